"""What happens to the warehouse between two runs."""

from __future__ import annotations

import json
from dataclasses import replace

from chaos.actions.action import Action, Rig
from viewkeeper.warehouse.commits import quiet_entry
from viewkeeper.warehouse.writer import system_clock

# What an entry of the first versions did not have yet.
LATER = ("origin", "relations", "evolved")


class OldWarehouse(Action):
    """A warehouse as an older version left it: views without cuts of their own and without stories."""

    name, kind, weight = "old-warehouse", "warehouse", 0.7
    is_alone = True

    def do(self, rig: Rig) -> None:
        rig.run.stop()
        with rig.world.warehouse.writer() as writer:
            latest = writer.latest
            views = json.loads(latest.views_json)
            standing: dict[str, list[object]] = {}
            for view in views.values():
                for source, position in view["positions"].items():
                    standing.setdefault(source, []).append(position)
            # Then all views stood at one cut; only such a warehouse can be made to look old.
            if any(not all(p == ps[0] for p in ps) for ps in standing.values()):
                return
            for view in views.values():
                del view["positions"]
                for part in LATER:
                    view["definition"].pop(part, None)
            entry = quiet_entry(latest, "lease", system_clock())
            with writer.lock:
                writer.append(
                    replace(entry, views_json=json.dumps(views, ensure_ascii=False, sort_keys=True))
                )
        rig.run.start()


ACTIONS = (OldWarehouse,)
