"""Managers that take turns: each job is done once, and told of in order."""

from __future__ import annotations

import contextlib
import queue
import threading
from types import SimpleNamespace
from typing import Any

from viewkeeper.engine.messages import ChangeComputed, Failed
from viewkeeper.live.managers.threads import AlternatingManagers
from viewkeeper.live.questions.message_counts import MessageCounts


class Manager:
    """Does a job when its gate is open; notes what it was told."""

    def __init__(self) -> None:
        self.counts = MessageCounts()
        self.noted: list[tuple[str, Any]] = []
        self.did: queue.SimpleQueue[int] = queue.SimpleQueue()

    def arrived(self, arrivals) -> None:
        self.noted.append(("arrived", arrivals))

    def maintain(self, job) -> dict[str, Any]:
        job.gate.wait(300)
        self.noted.append(("did", job.serial))
        self.did.put(job.serial)
        self.counts.transactions += 1
        if job.fails:
            raise RuntimeError("on purpose")
        return {"v": job.serial}

    def pass_over(self, job) -> None:
        self.noted.append(("passed", job.serial))

    def settled(self, numbers) -> None:
        self.noted.append(("settled", dict(numbers)))


def job(row: int, *, concerned: bool = True, fails: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        serial=row,
        concerned=("v",) if concerned else (),
        gate=threading.Event(),
        fails=fails,
        asking=contextlib.nullcontext,
    )


def turns() -> tuple[AlternatingManagers, list[Manager], queue.SimpleQueue[Any]]:
    managers, told = [Manager(), Manager()], queue.SimpleQueue()
    return AlternatingManagers("v", managers, told.put), managers, told  # type: ignore[arg-type]


def test_the_second_job_is_done_while_the_first_is_under_way_and_told_of_after_it():
    tandem, (first, second), told = turns()
    tandem.tell(("t1", "t2"))
    jobs = [job(1), job(2), job(3)]
    for number, each in enumerate(jobs, start=1):
        tandem.begin(each, {"s": number})
    jobs[1].gate.set()
    assert second.did.get(timeout=300) == 2
    assert told.empty()
    jobs[0].gate.set()
    jobs[2].gate.set()
    assert [told.get(timeout=300).job for _ in jobs] == [1, 2, 3]
    tandem.stop()
    settled = [("settled", {"s": number}) for number in (1, 2, 3)]
    arrived = ("arrived", ("t1", "t2"))
    assert first.noted[:6] == [
        arrived, ("did", 1), settled[0], ("passed", 2), settled[1], ("did", 3),
    ]  # fmt: skip
    assert second.noted[:4] == [arrived, ("passed", 1), settled[0], ("did", 2)]
    assert tandem.counts.transactions == 3


def test_a_job_that_does_not_concern_the_view_is_not_waited_for():
    tandem, _, told = turns()
    jobs = [job(1, concerned=False), job(2)]
    for each in jobs:
        each.gate.set()
        tandem.begin(each, {})
    assert told.get(timeout=300).job == 2
    tandem.stop()


def test_a_failure_is_told_at_once_and_what_comes_after_it_is_not():
    tandem, _, told = turns()
    jobs = [job(1, fails=True), job(2)]
    for each in jobs:
        tandem.begin(each, {})
    jobs[1].gate.set()
    jobs[0].gate.set()
    message = told.get(timeout=300)
    assert isinstance(message, Failed)
    assert message.job == jobs[0].serial
    tandem.stop()
    assert not isinstance(_next(told), ChangeComputed)


def _next(told: queue.SimpleQueue[Any]) -> Any:
    with contextlib.suppress(queue.Empty):
        return told.get_nowait()
    return None
