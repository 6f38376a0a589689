"""A schedule written down: what happens next, a line each. It drives a world exactly as written.

| line | what happens |
|---|---|
| ``commit S`` | source S commits its next transaction and announces it |
| ``deliver S [n]`` | the n-th oldest message on its way from S reaches the warehouse (the oldest if not said) |
| ``answer S [n]`` | the n-th oldest question on its way to S reaches it, and S answers at once |
| ``reveal S k`` | transaction k of S becomes visible to queries (with inversions) |
| ``settle`` | whatever is on its way arrives, and what follows from it, until all is quiet; no commits |
| ``note …`` | nothing; the rest of the line is a remark to the reader |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewkeeper.errors import UsageError
from viewkeeper.simulator.kernel.world import WAREHOUSE, Choice, Commit, Deliver, Reveal
from viewkeeper.simulator.world import World


@dataclass(frozen=True)
class Settle:
    """Everything on its way arrives."""


@dataclass(frozen=True)
class Note:
    """A remark to the reader."""

    text: str


Step = Choice | Settle | Note


def parse_schedule(text: str) -> tuple[Step, ...]:
    """The steps of a schedule; empty lines are skipped. Raises UsageError with the line."""
    return tuple(parse_step(line) for line in map(str.strip, text.splitlines()) if line)


def parse_step(line: str) -> Step:
    """One line of a schedule."""
    match line.split(maxsplit=1):
        case ["note", text]:
            return Note(text)
        case ["settle"]:
            return Settle()
    match line.split():
        case ["commit", source]:
            return Commit(source)
        case ["deliver", source, *rest] if len(rest) < 2:
            return Deliver(source, WAREHOUSE, _number(line, *rest) - 1)
        case ["answer", source, *rest] if len(rest) < 2:
            return Deliver(WAREHOUSE, source, _number(line, *rest) - 1)
        case ["reveal", source, number]:
            return Reveal(source, _number(line, number))
    raise _wrong_line(line)


def _number(line: str, word: str = "1") -> int:
    if word.isdecimal() and int(word) > 0:
        return int(word)
    raise _wrong_line(line)


def _wrong_line(line: str) -> UsageError:
    return UsageError(
        "scenario-file",
        f"the schedule has a line that is no step: {line}",
        detail="a step is one of commit S, deliver S [n], answer S [n], reveal S k, settle, note …",
    )


def step_text(choice: Choice) -> str:
    """The line that means this choice."""
    match choice:
        case Commit(source):
            return f"commit {source}"
        case Reveal(source, number):
            return f"reveal {source} {number}"
        case Deliver(sender, to, index):
            words = f"deliver {sender}" if to == WAREHOUSE else f"answer {to}"
            return words + (f" {index + 1}" if index else "")
    raise _wrong_line(str(choice))


def play(world: World, steps: Iterable[Step], *, leniently: bool = False) -> int:
    """Let the world take the steps, then settle; returns how many were left out.

    Raises UsageError on a step that can't happen. ``leniently``, for a protocol the schedule was not
    written for, messages that this protocol does not send are left out instead.
    """
    left_out = 0
    for step in steps:
        match step:
            case Note(text):
                # Remarks are about the protocol that the schedule was written for.
                if world.journal and not leniently:
                    world.journal.noted(text)
            case Settle():
                settle(world)
            case _ if step in world.choices():
                world.take(step)
            case Deliver() if leniently:
                left_out += 1
            case _:
                raise _impossible(world, step)
    settle(world)
    if world.choices():
        raise UsageError(
            "scenario-file",
            "the schedule ends before every transaction is committed",
            hint=f"add {', '.join(step_text(choice) for choice in world.choices())}",
        )
    world.require_finished()
    return left_out


def settle(world: World) -> None:
    """Everything on its way arrives, and what follows from it, until only commits could happen."""
    while moving := [c for c in world.choices() if not isinstance(c, Commit)]:
        world.take(moving[0])


def _impossible(world: World, step: Choice) -> UsageError:
    possible = ", ".join(step_text(choice) for choice in world.choices())
    return UsageError(
        "scenario-file",
        f"the schedule asks for what can't happen: {step_text(step)}",
        detail=f"possible at that point: {possible or 'nothing'}",
    )
