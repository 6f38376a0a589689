"""Every setting of a project: the tables of ``viewkeeper.toml`` and the headers of views.

Names and types come from the program; what they mean is said here, and a test fails when one is missing.
"""

from __future__ import annotations

from viewkeeper.project import config as project
from viewkeeper.sql import headers

SETTINGS = {
    "warehouse.path": "a folder beside the file, or an object store's address (`s3://…`). Default: `warehouse`",
    "warehouse.options": "what the object store needs: keys, region, endpoint; see [object storage](../howto/object-storage.md)",
    "warehouse.keep_transactions": "how many transactions back a state can be read; see [the warehouse](../warehouse.md)",
    "warehouse.keep_days": "how many days back a state can be read",
    "warehouse.group_readable": "whether the group of the warehouse's folder may read it, for other engines. Default: `false`, its owner alone",
    "warehouse.commits": "how what is ready is committed: `sequential` (one after the other), `dependent-only` (what shares a view or a source waits for what was ready before it), `batched` (all that is ready in one commit, for a warehouse whose commits are dear). Every transaction stays a state. Default: `dependent-only`",
    "spark.master": "`local[*]`, or a cluster: `spark://host:7077`. Default: `local[*]`",
    "spark.driver_memory": "how much memory the driver's JVM may take: `4g`, `1500m`. Default: `2g`",
    "spark.stage": "a folder that the driver and all executors see; see [scaling](../scaling.md). Default: `.stage` in the warehouse",
    "spark.config": "Spark's own settings, as Spark names them",
    "sources.*.url": "`postgresql://`, `mariadb://` or `sqlite:///`; `${NAME}` is taken from the environment",
    "sources.*.feed_url": "another address for the feed, where the feed needs other rights",
    "sources.*.queries_per_second": "how many questions of ours a second, over time; see [sparing a source](../running.md#sparing-a-source)",
    "sources.*.rows_per_second": "how many rows a second may be fetched",
    "sources.*.statement_seconds": "after so long a statement of ours is given up and tried again",
    "sources.*.outbox": "the table in which transactions say what they are part of; see [views that move together](../running.md#views-that-move-together)",
    "audit.every_seconds": "how often a run audits its views by itself (600); 0: never",
    "audit.keys": "how many keys such a sample has; 0: none",
    "transactions.timeout_seconds": "how long the parts of a transaction over several sources are waited for",
    "transactions.overdue": "then: `show-parts`, or `keep-waiting`",
}
KNOWLEDGE = (
    "`[[knowledge.replacements]]`, `[[knowledge.joins]]` and `[knowledge.views.NAME]` say what can stand for what "
    "when a schema changes: see [schema changes](../evolution.md)."
)
HEADERS = {
    "consistency": "`convergent`, `strong` or `complete`. Default: `complete`",
    "protocol": "which protocol keeps the view; see [which keeps what](../protocols/classes.md). Default: batched-sweep, where the view allows it",
    "refresh": "`auto`, `incremental`, `incremental-strict`, `full`; see [how a view is refreshed](../views.md#how-a-view-is-refreshed)",
    "every": "how often a `periodic` view is refreshed: `30 s`, `5 min`, `1 h`",
    "block": "a complete view shows one state for this many transactions of its group, in their order, instead of one for each; fewer after a pause of a second. Default: `1`",
    "publish": "also as a plain table for other tools; see [the warehouse](../warehouse.md)",
    "keep": "relations to be copied to the warehouse; see [what is kept](../views.md#what-is-kept)",
    "evolve": "`auto`, `approve`, `freeze`; see [schema changes](../evolution.md)",
    "freshness": "how old the view may be; kept as written",
    "dispensable": "what the view can do without when a source drops it",
    "irreplaceable": "what must not come from elsewhere",
    "extent": "how the rows may differ after a replacement: `equal`, `superset`, `subset`, `any`",
}
_WORDS = {
    str: "text",
    dict: "table",
    (int, float): "number",
    int: "number",
    bool: "true or false",
    list: "list",
}


def setting_names() -> list[str]:
    """Every setting that the file may have."""
    return [f"{table}.{key}" for table, known in project._KEYS.items() for key in known]


def header_words() -> list[str]:
    return list(headers._KNOWN)


def page() -> str:
    lines = [
        "# Settings\n",
        (
            "Made from the program by `make reference`. A project is a folder with `viewkeeper.toml` and a folder `views`. "
            "An entry that is not known is refused, with the nearest one that is.\n"
        ),
        "## viewkeeper.toml\n",
    ]
    for table, known in project._KEYS.items():
        lines += [f"### [{table.replace('*', 'NAME')}]\n", "| entry | type | |\n|---|---|---|"]
        for key, kind in known.items():
            meaning = SETTINGS.get(f"{table}.{key}", "**not described yet**")
            lines.append(f"| `{key}` | {_WORDS.get(kind, 'text')} | {meaning} |")
        lines.append("")
    lines += [f"### [knowledge]\n\n{KNOWLEDGE}\n", "## Headers of a view\n"]
    lines += ["`-- word: value` above the query. See [writing views](../views.md#headers).\n"]
    lines += ["| header | |\n|---|---|"]
    lines += [
        f"| `{word}` | {HEADERS.get(word, '**not described yet**')} |" for word in header_words()
    ]
    lines += [
        "\n## Environment\n",
        "| variable | |\n|---|---|",
        "| any `${NAME}` of the file | looked up when the value is used, and masked wherever it would be shown |",
        "| `VIEWKEEPER_TOKEN` | the token that the dashboard asks for |",
        "| `JAVA_HOME` | the Java that Spark runs on; otherwise `java` on the `PATH` |",
        "| `NO_COLOR` | no colours in a terminal |",
    ]
    return "\n".join(lines) + "\n"
