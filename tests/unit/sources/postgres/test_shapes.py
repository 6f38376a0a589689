"""What becomes of a feed's relations by what the stream, the trigger and a look at the catalog say."""

from __future__ import annotations

from typing import Any

import pytest

from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import RelationSchema
from viewkeeper.sources.postgres.catalog import Described, described
from viewkeeper.sources.postgres.pgoutput import StreamColumn, StreamRelation
from viewkeeper.sources.postgres.shapes import SAME, TrackedRelations, renamed_by_place
from viewkeeper.sources.postgres.watching import Seen, Token, Watch

THINGS, OTHERS = 70, 80


def document(
    oid: int, name: str, columns: str, key: str = "id", first: int = 1, **more: Any
) -> dict[str, Any]:
    """``columns``: names of bigints; the first one's number is given."""
    found = [
        {
            "num": number, "name": column, "generated": "", "oid": 20, "modifier": -1,
            "type": "pg_catalog.int8", "category": "b", "element": "", "element_category": "",
            "base_modifier": -1,
        }
        for number, column in enumerate(columns.split(), start=first)
    ]  # fmt: skip
    return {
        "oid": oid, "schema": "public", "name": name, "columns": found, "key": key.split(),
        "children": [], "partial": [], "kind": "r", "persistence": "p", **more,
    }  # fmt: skip


def relation(oid: int, name: str, columns: str, **more: Any) -> Described:
    return described(name, document(oid, name, columns, **more))


def sent(oid: int, name: str, columns: str) -> StreamRelation:
    found = tuple(StreamColumn(column, 20, -1) for column in columns.split())
    return StreamRelation(oid, "public", name, "f", found)


class Server:
    """The catalog as it is now: tables by oid, and which of them are published."""

    def __init__(self, *tables: Described, published: tuple[int, ...] = (THINGS, OTHERS)) -> None:
        self.tables = {each.oid: each for each in tables}
        self.published = published

    def describe(self, oid: int, name: str) -> Described | None:
        found = self.tables.get(oid)
        return None if found is None else described(name, found.document)

    def holder(self, name: str, xid: int) -> int | None:
        return next((oid for oid, each in self.tables.items() if each.table_name == name), None)

    def publishes(self, oid: int) -> bool:
        return oid in self.published


def tracked(
    known: Described, server: Server | None = None, believed: Described | None = None
) -> TrackedRelations:
    server = server or Server()
    taken_for = {} if believed is None else {believed.name: believed.relation}
    return TrackedRelations(
        "src",
        [known],
        lambda oids: {},
        server.describe,
        taken_for,
        server,
    )


def names(schema: RelationSchema | None) -> str:
    return "" if schema is None else " ".join(schema.schema.names)


BEFORE = relation(THINGS, "things", "id size")
AFTER = relation(THINGS, "things", "id weight size")


def test_a_feed_of_which_nobody_knows_what_it_was_tells_nothing_with_its_first_row():
    assert list(tracked(AFTER).meet(sent(THINGS, "things", "id size"))) == []


def test_what_views_take_a_relation_for_is_compared_with_its_first_row():
    assert list(tracked(BEFORE, believed=BEFORE).meet(sent(THINGS, "things", "id size"))) == []
    # Changed after the feed was opened; and before, which the catalog shows and no view knows.
    for known in (BEFORE, AFTER):
        feed = tracked(known, believed=BEFORE)
        assert any(each.is_doubted for each in feed.by_oid.values()) == (known is AFTER)
        (change,) = feed.meet(sent(THINGS, "things", "id weight size"))
        assert (names(change["before"]), names(change["after"])) == ("id size", "id weight size")
        assert change["rewrites"]
        assert not any(each.is_doubted for each in feed.by_oid.values())
        assert list(feed.meet(sent(THINGS, "things", "id weight size"))) == []


def test_a_feed_that_starts_in_the_past_tells_what_is_still_to_come_when_it_comes():
    feed = tracked(AFTER, believed=BEFORE)
    assert list(feed.meet(sent(THINGS, "things", "id size"))) == []
    (change,) = feed.meet(sent(THINGS, "things", "id weight size"))
    assert names(change["before"]) == "id size"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("id size", relation(1, "t", "id size more"), {}),
        ("id size more", relation(1, "t", "id size"), {}),
        ("id size", relation(1, "t", "id weight"), {"size": "weight"}),
        ("a b", relation(1, "t", "b a", key=""), {}),
        # One was dropped at some time: a new one, or one that was renamed?
        ("id size", relation(1, "t", "id weight", first=2), None),
        ("id size", relation(1, "t", "id weight more"), None),
    ],
)
def test_other_names_are_renamed_columns_only_where_that_is_certain(before, now, expected):
    assert renamed_by_place(tuple(before.split()), now) == expected


def test_columns_of_which_it_is_not_certain_stop_the_feed():
    feed = tracked(relation(THINGS, "things", "id weight", first=2), believed=BEFORE)
    with pytest.raises(SourceError) as caught:
        list(feed.meet(sent(THINGS, "things", "id weight")))
    assert caught.value.code == "schema-unknown"


# -- names ----------------------------------------------------------------------------------------


def renamed(oid: int, old: str, new: str | None, columns: str = "id size") -> dict[str, Any]:
    after = None if new is None else document(oid, new, columns)
    return {
        "tag": "ALTER TABLE", "statement": "…", "before": document(oid, old, columns),
        "after": after, "rewritten": False,
    }  # fmt: skip


def test_a_renamed_table_is_followed_unless_another_one_has_its_name():
    free = Server(relation(THINGS, "items", "id size"))
    (change,) = tracked(BEFORE, free).noted(renamed(THINGS, "things", "items"))
    assert (change["after"], change["renamed_to"]) == (None, "items")

    taken = Server(relation(THINGS, "old", "id size"), relation(OTHERS, "things", "size id"))
    feed = tracked(BEFORE, taken)
    (change,) = feed.noted(renamed(THINGS, "things", "old"))
    assert (names(change["before"]), names(change["after"])) == ("id size", "size id")
    assert change["rewrites"]
    assert change["renamed_columns"] == {}
    assert {oid: each.name for oid, each in feed.by_oid.items()} == {OTHERS: "things"}
    assert list(feed.noted(renamed(THINGS, "old", "older"))) == []


@pytest.mark.parametrize("after", ["old", None], ids=["renamed", "dropped"])
def test_another_table_whose_changes_are_not_in_the_feed_stops_it(after):
    tables = [relation(OTHERS, "things", "id size")]
    feed = tracked(BEFORE, Server(*tables, published=(THINGS,)))
    with pytest.raises(SourceError) as caught:
        list(feed.noted(renamed(THINGS, "things", after)))
    assert caught.value.code == "table-replaced"


def test_a_dropped_table_is_gone_where_no_other_has_its_name():
    (change,) = tracked(BEFORE).noted(renamed(THINGS, "things", None))
    assert (change["after"], change.get("renamed_to")) == (None, None)


def test_rows_of_the_table_that_had_the_name_are_not_passed_over_in_silence():
    feed = tracked(relation(OTHERS, "things", "id size"))
    with pytest.raises(SourceError) as caught:
        list(feed.noted(renamed(THINGS, "things", "old")))
    assert caught.value.code == "table-replaced"


# -- looks ----------------------------------------------------------------------------------------

SEEN = Seen(9, {}, (), {}, {"things": THINGS})


def test_a_look_tells_another_key_and_nothing_where_nothing_changed():
    feed = tracked(BEFORE, Server(BEFORE), believed=BEFORE)
    assert feed.compared(THINGS, rewritten=False) is SAME
    other = relation(THINGS, "things", "id size", key="id size")
    feed = tracked(BEFORE, Server(other), believed=BEFORE)
    now = feed.compared(THINGS, rewritten=False)
    assert now == other
    (change,) = feed.found(THINGS, other, SEEN)
    assert (change["before"].key, change["after"].key) == (("id",), ("id", "size"))
    assert change["rewrites"]


def test_a_look_tells_rows_that_were_rewritten():
    feed = tracked(BEFORE, Server(BEFORE), believed=BEFORE)
    assert feed.compared(THINGS, rewritten=True) == BEFORE
    (change,) = feed.found(THINGS, BEFORE, SEEN)
    assert change["before"] == change["after"]
    assert change["rewrites"]


def test_a_look_misses_old_values():
    feed = tracked(BEFORE, Server(relation(THINGS, "things", "id size", partial=[THINGS])))
    with pytest.raises(SourceError) as caught:
        feed.compared(THINGS, rewritten=False)
    assert caught.value.code == "identity-lost"


class Catalog:
    """Answers looks with what it is set to."""

    def __init__(self) -> None:
        self.entries: dict[str, list[Any]] = {str(THINGS): ["1/2/3/4", True]}
        self.triggers = ["ddl", "rewrite", "notes"]
        self.token = ["shape", "files"]

    @property
    def text(self) -> str:
        import json

        return json.dumps(
            {
                "lsn": "0/9",
                "altering": False,
                "entries": self.entries,
                "triggers": self.triggers,
                "tables": {str(THINGS): self.token},
                "holders": {"things": THINGS},
            }
        )

    def watch(self) -> Watch:
        watch = Watch("src", "viewkeeper_src", lambda sql: [(self.text,)])
        watch.begin([BEFORE])
        return watch


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ({}, "not-published"),
        ({str(THINGS): ["1/2/3/4", False]}, "publication-filtered"),
        ({str(THINGS): ["1/2/3/5", True]}, "not-published"),  # put back by another transaction
    ],
)
def test_a_watch_misses_a_table_that_is_not_published_as_it_was(entries, code):
    catalog = Catalog()
    watch = catalog.watch()
    watch.judge(catalog.text, {"things": BEFORE})
    catalog.entries = entries
    for judge in (watch.look, lambda: watch.judge(catalog.text, {})):
        with pytest.raises(SourceError) as caught:
            judge()
        assert caught.value.code == code
        assert "rebuild --source src --allow-setup" in caught.value.hint


def test_without_triggers_a_cut_shows_what_the_feed_has_told_or_is_refused():
    catalog = Catalog()
    watch = catalog.watch()
    catalog.token = ["other shape", "other files"]
    watch.judge(catalog.text, {"things": AFTER})  # the triggers tell it in the feed
    catalog.triggers = ["ddl/altered", "rewrite", "notes"]
    for now in (AFTER, BEFORE):
        with pytest.raises(SourceError) as caught:
            watch.judge(catalog.text, {"things": now})
        assert caught.value.code == "broken-query"
    watch.adopt(Seen(9, {}, (), {THINGS: Token("other shape", "other files")}, {}), THINGS)
    watch.judge(catalog.text, {"things": BEFORE})
    watch.follow([BEFORE], doubted=["things"])
    with pytest.raises(SourceError):
        watch.judge(catalog.text, {"things": BEFORE})
