"""What was asked in advance changes nothing but when: every state is the same, right or wrong guessed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slices import seeds
from unit.live.live_world import LiveWorld, MemoryCut
from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, Schema
from viewkeeper.arrow import arrow_type
from viewkeeper.engine.integrator import Arrival
from viewkeeper.errors import SourceError
from viewkeeper.live.questions.pacing import Pace, SourceLimits
from viewkeeper.live.questions.prefetching import Prefetching
from viewkeeper.live.questions.source_queries import Asked, AskedEnough, Questions
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.sources.interface import KeyedRead
from viewkeeper.spark.arrow import bag_of
from viewkeeper.spark.staged import Staging

SCHEMA = Schema.of(id=INTEGER, name=STRING)
ROWS = Bag.of(SCHEMA, [(n % 7, f"row {n}") for n in range(20)] + [(3, "row 3")])
SEEDS = seeds(60, least=15)
PLAIN = Questions.__post_init__


@dataclass
class Foreseeing(LiveWorld):
    """Asks for something in advance of every job, at its cuts: for the batch, for more or for less."""

    asked: list[int] = field(default_factory=list)
    found: int = 0

    def _job(self, batch: tuple[Arrival, ...], told: int, staging: Staging) -> SimpleNamespace:
        job = super()._job(batch, told, staging)
        first = batch[0].number
        last = self.rng.randint(first, len(self.arrivals))
        guessed = tuple(self.arrivals[first - 1 : last])
        earnest = job.questions
        ahead = Questions.in_advance(earnest.cuts, staging, earnest.paces)
        prefetching = Prefetching(ahead, [self.made_manager()], guessed)
        if self.rng.random() < 0.7:
            prefetching._asking.join()
        prefetching.end()
        self.asked.append(sum(asked.queries for asked in ahead.asked.values()))
        self.found += len(ahead._remembered)
        questions = ahead.in_earnest(earnest.reflected, staging)
        job.questions, job.asking = questions, lambda: _given(questions)
        return job


class _given:
    def __init__(self, value: Questions) -> None:
        self.value = value

    def __enter__(self) -> Questions:
        return self.value

    def __exit__(self, *_: object) -> None: ...


def foreseeing(seed: int) -> Foreseeing:
    scenario = random_scenario(seed, Size(transactions=12))
    return Foreseeing(scenario, scenario.definition, seed)


def test_every_state_is_the_same_whatever_was_foreseen():
    asked = found = 0
    for seed in range(SEEDS):
        world = foreseeing(seed)
        assert world.run(4) == world.states, seed
        asked += sum(world.asked)
        found += world.found
    assert asked > SEEDS
    assert found > SEEDS / 2


def test_whoever_remembers_answers_of_other_cuts_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """Shows that the worlds above can tell."""
    wrong = 0
    for seed in range(SEEDS):
        kept: dict = {}
        monkeypatch.setattr(Questions, "__post_init__", _with(kept))
        world = foreseeing(seed)
        wrong += world.run(4) != world.states
    assert wrong


def _with(kept: dict):
    def began(self: Questions) -> None:
        PLAIN(self)
        self._remembered = kept

    return began


# -- remembering -----------------------------------------------------------------------------------


class Counting(MemoryCut):
    """Gives some rows that nobody asked for, as a source may whose texts differ by case alone."""

    def __init__(self, more: frozenset[int] = frozenset()) -> None:
        super().__init__({"things": ROWS})
        self.more = more
        self.keys: list[list[int]] = []

    def read(self, question: KeyedRead):
        wanted = question.keys.column("id").to_pylist()
        self.keys.append(sorted(wanted))
        wider = pa.table({"id": pa.array(sorted({*wanted, *self.more}), pa.int64())})
        return super().read(KeyedRead("things", question.columns, ("id",), wider))


def in_advance(cut: MemoryCut) -> Questions:
    staging = Staging(LiveWorld.NOWHERE, Path())
    return Questions.in_advance({"shop": cut}, staging, {"shop": Pace(SourceLimits())})  # type: ignore[dict-item]


def asked(questions: Questions, keys: list[int]) -> pa.Table:
    table = pa.table({"id": pa.array(keys, pa.int64())})
    return questions._found("shop", KeyedRead("things", SCHEMA.names, ("id",), table), SCHEMA)


some_keys = st.lists(st.integers(0, 8), unique=True, max_size=6)


@given(st.lists(some_keys, min_size=1, max_size=3), some_keys, st.frozensets(st.integers(0, 8)))
def test_what_is_remembered_and_what_is_asked_besides_is_the_whole_answer(early, late, more):
    cut = Counting(more)
    ahead = in_advance(cut)
    earnest = ahead.in_earnest({}, ahead.staging)
    for questions, keys in [*((ahead, keys) for keys in early), (earnest, late)]:
        found = bag_of(asked(questions, keys), SCHEMA)
        assert {row for row, _ in ROWS if row[0] in keys} <= {row for row, _ in found}
        for row, count in found:
            assert count == dict(ROWS)[row]
    every = [key for keys in cut.keys for key in keys]
    assert sorted(every) == sorted({*late, *(key for keys in early for key in keys)})
    assert ahead.asked["shop"].queries == len(cut.keys)


def test_a_relation_that_was_asked_for_by_other_columns_is_asked_again():
    ahead = in_advance(Counting())
    asked(ahead, [1, 2])
    names = pa.table({"name": ["row 3"]})
    earnest = ahead.in_earnest({}, ahead.staging)
    earnest.cuts["shop"].read = MemoryCut({"things": ROWS}).read  # type: ignore[method-assign]
    found = earnest._found("shop", KeyedRead("things", SCHEMA.names, ("name",), names), SCHEMA)
    assert bag_of(found, SCHEMA) == Bag.of(SCHEMA, [(3, "row 3"), (3, "row 3")])


@pytest.mark.parametrize(
    ("type", "keys"),
    [(DOUBLE, pa.array([0.0])), (INTEGER, pa.array([0], pa.decimal128(10, 0)))],
    ids=["doubles", "another type"],
)
def test_keys_that_arrow_may_not_tell_apart_as_sources_do_are_asked_for_again(type, keys):
    """A source takes −0.0 for 0.0, and Arrow does not."""
    schema = Schema.of(id=type)
    zero = pa.array([-0.0 if type == DOUBLE else 0], arrow_type(type))

    class Lenient(MemoryCut):
        times = 0

        def read(self, question: KeyedRead):
            self.times += 1
            yield pa.RecordBatch.from_arrays([zero], ["id"])

    cut = Lenient({})
    ahead = in_advance(cut)
    read = KeyedRead("things", ("id",), ("id",), pa.table({"id": keys}))
    for questions in (ahead, ahead.in_earnest({}, ahead.staging, remembers=True)):
        assert questions._found("shop", read, schema).num_rows == 1
    assert cut.times == 2


def test_an_error_in_advance_is_met_again_in_earnest():
    class Broken(MemoryCut):
        times = 0

        def read(self, question: KeyedRead):
            self.times += 1
            raise SourceError(f"broken-{self.times}", "no", source="shop", retryable=True)

    ahead = in_advance(Broken({}))
    for questions in (ahead, ahead.in_earnest({}, ahead.staging)):
        with pytest.raises(SourceError) as caught:
            asked(questions, [1])
        assert caught.value.code == "broken-1"


def test_nothing_is_asked_in_advance_once_the_batch_is_there():
    cut = Counting()
    ahead = in_advance(cut)
    ahead.stop_asking()
    with pytest.raises(AskedEnough):
        asked(ahead, [1])
    assert cut.keys == []
    assert ahead.asked == {"shop": Asked()}
