"""What the API answers, endpoint by endpoint."""

from __future__ import annotations

from typing import Any

from viewkeeper.dashboard.endpoints import Endpoint, Parameter, Values, openapi
from viewkeeper.dashboard.evolution_page import EvolutionFiles, changes_document
from viewkeeper.dashboard.project_monitor import ProjectMonitor
from viewkeeper.dashboard.time_travel import difference, rows_at
from viewkeeper.dashboard.view_page import view_document
from viewkeeper.project.remembering import opened_warehouse
from viewkeeper.warehouse import Warehouse

_VIEW = Parameter("view", "path", str, "a view's name")
_LIMIT = Parameter("limit", "query", int, "how many rows at most")


class Api:
    """The endpoints over one project."""

    def __init__(self, monitor: ProjectMonitor) -> None:
        self._monitor = monitor
        self.evolution = EvolutionFiles(monitor.config.folder)

    def endpoints(self) -> list[Endpoint]:
        """All of them, those of the lab excepted."""
        return [
            Endpoint(
                "GET", "/api/overview", "Sources, views and the run at one moment",
                lambda values: self.moment(),
                gives="the fields of `status --json`, and what the pages draw beside them",
            ),
            Endpoint(
                "GET", "/api/views/{view}", "One view: definition, versions, plan, recent states",
                lambda values: view_document(self._monitor, values["view"]), (_VIEW,),
            ),
            Endpoint(
                "GET", "/api/views/{view}/rows", "A view's rows at a transaction",
                self._rows,
                (
                    _VIEW,
                    Parameter("as_of", "query", int, "transaction number; the newest without it"),
                    Parameter("first", "query", int, "how many distinct rows to skip"),
                    _LIMIT,
                ),
                "columns, rows with their counts, the transaction number that they belong to (`txn`); what "
                "all views show of it is one cut of every source, so this one may be shown as it was at "
                "an older number (`shows`); views that are too far behind for that are `apart`",
            ),
            Endpoint(
                "GET", "/api/views/{view}/difference", "By which rows two transactions differ",
                self._difference,
                (
                    _VIEW,
                    Parameter("before", "query", int, "transaction number", required=True),
                    Parameter("after", "query", int, "transaction number", required=True),
                    _LIMIT,
                ),
                "rows with signed counts: above zero they came, below zero they went",
            ),
            Endpoint(
                "POST", "/api/views/{view}/audit", "Compare a view with its sources, row by row",
                self._audit, (_VIEW,),
                "`running`; the verdict comes with a later moment",
            ),
            Endpoint(
                "GET", "/api/evolution", "Schema changes, newest first, and decisions about them",
                lambda values: changes_document(self._monitor, self.evolution),
            ),
            Endpoint(
                "POST", "/api/evolution/{change}", "Approve or reject a schema change that waits",
                self._decide,
                (
                    Parameter("change", "path", str, "the change's id"),
                    Parameter("decision", "body", str, "approve or reject", required=True),
                ),
            ),
        ]  # fmt: skip

    def moment(self) -> dict[str, Any]:
        """What every page listens to."""
        waiting = self.evolution.waiting()
        return self._monitor.moment() | {"changes_waiting": waiting}

    def pulse(self) -> object:
        """Equal while no page has anything new to show."""
        return self._monitor.pulse(), self.evolution.pulse()

    def _warehouse(self) -> Warehouse:
        return opened_warehouse(self._monitor.config)

    def _rows(self, values: Values) -> Any:
        view = self._monitor.known_view(values["view"])
        return rows_at(self._warehouse(), view, values["as_of"], values["limit"], values["first"])

    def _difference(self, values: Values) -> Any:
        view = self._monitor.known_view(values["view"])
        before, after = values["before"], values["after"]
        return difference(self._warehouse(), view, before, after, values["limit"])

    def _audit(self, values: Values) -> Any:
        view = self._monitor.known_view(values["view"])
        return self._monitor.audits.start(view, self._monitor.incarnation_of(view))

    def _decide(self, values: Values) -> Any:
        return self.evolution.decide(values["change"], values["decision"])


def with_description(endpoints: list[Endpoint]) -> list[Endpoint]:
    """The endpoints, and one more that describes them all."""
    described = Endpoint(
        "GET", "/api/openapi.json", "This API, in OpenAPI's words", lambda values: document
    )
    document = openapi([*endpoints, described])
    return [*endpoints, described]
