"""The judge of live runs and of the storm, on histories that are made: it grants what is right and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from chaos.judging import definition
from chaos.scenery import CUSTOMERS, MAIN, NOTES, ORDERS, PINS, REGIONS, SCHEMAS
from chaos.wrong import MOVED
from viewkeeper.algebra import Bag
from viewkeeper.consistency import SourceHistories
from viewkeeper.consistency.histories import ViewStates
from viewkeeper.timeline import Transaction
from viewkeeper.views import Level
from witnessing.judging import history_until, judged

VIEWS = list(MAIN)
DEFINITIONS = [definition(view) for view in VIEWS]
INITIAL = {
    ORDERS: [(1, 1, 5), (2, 2, 6)],
    NOTES: [(1, "a"), (1, "a")],
    CUSTOMERS: [(1, "one", 1), (2, "two", 2)],
    REGIONS: [(1, "north"), (2, "south")],
}
# In the order in which the warehouse shows them; each changes a copy and, but for one, a joined view.
STEPS = (
    {ORDERS: [((3, 1, 7), 1)], NOTES: [((3, "both"), 1)]},
    {CUSTOMERS: [((1, "one", 1), -1), ((1, "one", 2), 1)]},
    {ORDERS: [((1, 1, 5), -1)]},
    {NOTES: [((9, "of no order"), 1)]},
    {REGIONS: [((2, "south"), -1), ((2, "far south"), 1)]},
    {ORDERS: [((1, 1, 5), 1)]},
    {CUSTOMERS: [((3, "three", 1), 1)]},
)


def histories() -> SourceHistories:
    scripts = {name.source: [] for name in INITIAL}
    for step in STEPS:
        ((source),) = {name.source for name in step}
        changes = tuple((name, Bag.signed(SCHEMAS[name], rows)) for name, rows in step.items())
        scripts[source].append(Transaction(source, len(scripts[source]) + 1, changes))
    return SourceHistories({n: Bag.of(SCHEMAS[n], rows) for n, rows in INITIAL.items()}, scripts)


def shown_at(places) -> list[tuple[Bag, ...]]:
    """The states of a warehouse that shows the n-th transaction in the state ``places[n]``, from 1 on."""
    known = histories()
    views, cut = ViewStates(DEFINITIONS, known), known.start
    states = [views.at(cut)]
    for number in range(1, len(STEPS) + 1):
        for place, step in zip(places, STEPS, strict=True):
            if place == number:
                ((source),) = {name.source for name in step}
                cut = cut.advanced(source, dict(cut)[source] + 1)
        states.append(views.at(cut))
    return states


RIGHT = list(range(1, len(STEPS) + 1))


def test_states_that_show_each_transaction_by_itself_are_complete():
    found = judged(DEFINITIONS, shown_at(RIGHT), histories(), PINS)
    assert found.meets(Level.COMPLETE), found.problem


@pytest.mark.parametrize("variant", MOVED)
def test_transactions_that_are_shown_in_another_state_are_not_complete(variant):
    places = MOVED[variant](np.array(RIGHT))
    found = judged(DEFINITIONS, shown_at(places), histories(), PINS)
    assert found.level is Level.STRONG
    assert found.violation.level is Level.COMPLETE


@pytest.mark.parametrize("variant", MOVED)
@pytest.mark.parametrize("view", [view for view in MAIN if not view.endswith("_now")])
def test_one_view_that_does_so_beside_others_is_not_at_their_cut(variant, view):
    wrong = shown_at(MOVED[variant](np.array(RIGHT)))
    place = VIEWS.index(view)
    mixed = [
        (*right[:place], late[place], *right[place + 1 :])
        for right, late in zip(shown_at(RIGHT), wrong, strict=True)
    ]
    found = judged(DEFINITIONS, mixed, histories(), PINS)
    assert not found.claims_hold
    assert not found.meets(Level.COMPLETE)


def test_copies_of_no_moment_or_of_an_earlier_one_are_wrong_by_themselves():
    states = shown_at(RIGHT)
    orders = VIEWS.index("orders_now")
    invented = states[3][orders] + Bag.of(SCHEMAS[ORDERS], [(99, 1, 1)])
    never = [*states[:3], (*states[3][:orders], invented, *states[3][orders + 1 :]), *states[4:]]
    found = judged(DEFINITIONS, never, histories(), PINS)
    assert found.level is Level.NONE
    assert "state 3 shows shop as it was never" in found.problem
    back = [*states[:4], states[0], *states[5:]]
    found = judged(DEFINITIONS, back, histories(), PINS)
    assert "only earlier in its history" in found.problem


def test_what_was_committed_and_never_shown_is_missed_where_all_must_be_there():
    states, known = shown_at(RIGHT)[:-1], histories()
    found = judged(DEFINITIONS, states, known, PINS)
    assert (found.level, found.convergent) == (Level.CONSISTENT, False)
    found = judged(DEFINITIONS, states, known, PINS, is_whole=False)
    assert found.meets(Level.COMPLETE), found.problem
    assert history_until(known, known.start).lengths == dict.fromkeys(known.lengths, 0)
