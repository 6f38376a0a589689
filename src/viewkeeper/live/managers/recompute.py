"""Views that are recomputed: from whole relations at a job's end, their difference to what they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from viewkeeper.live.jobs import Job
from viewkeeper.live.managers.buffering import BufferedManager, ManagerInputs
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.live.reading.contents import Reading, narrowed
from viewkeeper.protocols.recompute import Recompute
from viewkeeper.spark.staged import StagedRelation, Staging
from viewkeeper.views.assembly import WholeView


class RecomputeManager(BufferedManager):
    """Any view, whatever it does; it pays with a reading of everything for every job."""

    level = Recompute.level

    def __init__(self, inputs: ManagerInputs, session: Any) -> None:
        """``session`` is Spark's for large data: whole relations are large, however small a job is."""
        super().__init__(inputs)
        self._session = session
        self._view = WholeView(self.definition)
        self._extent: StagedRelation | None = None

    def changes(self, job: Job, questions: Questions) -> Iterator[tuple[Any, int]]:
        self.take(job.batch)
        self.counts.transactions += len(job.batch)
        if self.view not in job.concerned:
            return
        staging = Staging(self._session, job.stage.path)
        before = self.extent(staging) if self._extent is None else self._extent.moved(staging)
        self._extent = self._computed(questions, staging)
        change: Any = self._extent - before
        yield staging.taken(change.consolidated()).moved(questions.staging), job.batch[-1].number

    def _computed(self, questions: Questions, staging: Staging) -> StagedRelation:
        with questions.held(self.definition.sources) as cuts:
            waiting = self.ahead(questions)
            reading = Reading(staging, cuts, questions.reflected, waiting, self.inputs.changes)
            relations = reading.relations([self.definition])
        asked = len(self.definition.sources)
        self.counts.questions += asked
        self.counts.answers += asked
        self.counts.reads += len(relations)
        rows = self._view.evaluated(narrowed(self.definition, relations))
        return staging.taken(rows.consolidated())
