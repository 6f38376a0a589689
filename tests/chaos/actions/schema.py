"""Schema changes at the sources, while everybody writes; undone at the end of the round."""

from __future__ import annotations

from chaos.actions.action import Action, Rig
from chaos.scenery import CRM, CUSTOMERS, GEO, ORDERS, PEOPLE, PROFILES, REGIONS, SHOP
from viewkeeper.views import Level


class _Schema(Action):
    kind = "schema"
    level = Level.STRONG
    is_alone = True

    def draw(self) -> None:
        self.seconds = self.rng.uniform(1, 3)


class RenameColumn(_Schema):
    """A column gets another name, and its old one back."""

    name, weight = "rename-column", 1.5

    def draw(self) -> None:
        super().draw()
        self.relation, self.place = self.rng.choice(
            ((ORDERS, 2), (ORDERS, 1), (CUSTOMERS, 1), (CUSTOMERS, 2), (REGIONS, 1))
        )
        self.new = f"named_{self.rng.randrange(1000)}"

    def __str__(self) -> str:
        return f"{self.name} {self.relation}"

    def do(self, rig: Rig) -> None:
        rig.run.start()
        self.old = rig.witness.traffic.names[self.relation][1][self.place]
        self._rename(rig, self.new)
        rig.wait(self.seconds)

    def undo(self, rig: Rig) -> None:
        self._rename(rig, self.old)

    def _rename(self, rig: Rig, new: str) -> None:
        with rig.witness.owner(self.relation.source) as owner:
            table, columns = rig.witness.traffic.names[self.relation]
            if columns[self.place] != new:
                owner.run(f"ALTER TABLE {table} RENAME COLUMN {columns[self.place]} TO {new}")
                columns[self.place] = new


class RenameTable(_Schema):
    """A table gets another name, and its old one back."""

    name, weight = "rename-table", 1.0

    def draw(self) -> None:
        super().draw()
        self.relation = self.rng.choice((ORDERS, CUSTOMERS))
        self.new = f"{self.relation.relation}_{self.rng.randrange(1000)}"

    def __str__(self) -> str:
        return f"{self.name} {self.relation}"

    def do(self, rig: Rig) -> None:
        rig.run.start()
        self._rename(rig, self.new)
        rig.wait(self.seconds)

    def undo(self, rig: Rig) -> None:
        self._rename(rig, self.relation.relation)

    def _rename(self, rig: Rig, new: str) -> None:
        with rig.witness.owner(self.relation.source) as owner:
            table, columns = rig.witness.traffic.names[self.relation]
            if table != new:
                owner.run(f"ALTER TABLE {table} RENAME TO {new}")
                rig.witness.traffic.names[self.relation] = (new, columns)


class AddColumn(_Schema):
    """A column more: nothing happens to the views."""

    name, weight = "add-column", 1.0
    level = Level.STRONG

    def draw(self) -> None:
        super().draw()
        self.source = self.rng.choice((SHOP, CRM, GEO))
        self.column = f"more_{self.rng.randrange(10**6)}"

    def __str__(self) -> str:
        return f"{self.name} {self.source}"

    def do(self, rig: Rig) -> None:
        rig.run.start()
        table = {SHOP: "accounts", CRM: "profiles", GEO: "odd"}[self.source]
        with rig.witness.owner(self.source) as owner:
            owner.run(f"ALTER TABLE {table} ADD COLUMN {self.column} INTEGER")


class DropColumn(_Schema):
    """A column that a view can do without is dropped; later it is there again, and asked for again."""

    name, weight = "drop-column", 0.7

    def do(self, rig: Rig) -> None:
        rig.run.start()
        with rig.witness.owner(CRM) as owner:
            owner.run("ALTER TABLE profiles DROP COLUMN phone")
            rig.witness.traffic.names[PROFILES][1][2] = "NULL"
        rig.wait(self.seconds)

    def undo(self, rig: Rig) -> None:
        with rig.witness.owner(CRM) as owner:
            if rig.witness.traffic.names[PROFILES][1][2] == "NULL":
                owner.run("ALTER TABLE profiles ADD COLUMN phone VARCHAR(50)")
                rig.witness.traffic.names[PROFILES][1][2] = "phone"
                owner.run("UPDATE profiles SET phone = CONCAT('1', p_id)")
        # The user writes the view again: only then it has the column again.
        rig.world.write_view("people", f"-- once more {self.rng.random()}\n{PEOPLE}")
        rig.run.stop()
        rig.run.start()


ACTIONS = (RenameColumn, RenameTable, AddColumn, DropColumn)
