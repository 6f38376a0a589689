"""Which protocol keeps a view: what its text says, what its class allows, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from docsite.view_classes import EXAMPLES, example, page
from viewkeeper.errors import UsageError
from viewkeeper.live.managers.manager_factory import MADE_BY
from viewkeeper.protocols.choice import choice_for, period_seconds
from viewkeeper.protocols.registry import LIVE, Manager
from viewkeeper.sql.headers import PROTOCOLS
from viewkeeper.views import Level


def declared(name: str, protocol: str | None = None, level: Level = Level.STRONG, **settings: str):
    pairs = tuple(settings.items())
    return replace(example(name), protocol=protocol, level=level, settings=pairs)


def refused(definition) -> UsageError:
    with pytest.raises(UsageError) as caught:
        choice_for(definition)
    return caught.value


def test_every_protocol_that_a_view_may_name_runs_live():
    assert set(LIVE) == set(PROTOCOLS)


def test_a_protocol_that_no_record_names_is_refused():
    error = refused(declared("join, all keys shown", "no-such-protocol"))
    assert error.code == "unknown-protocol"
    assert all(name in error.detail for name in LIVE)


def test_every_kind_of_manager_has_one_factory_and_is_some_protocols():
    assert set(MADE_BY) == set(Manager) == {record.manager for record in LIVE.values()}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_without_a_choice_batched_sweep_keeps_what_can_be_kept_from_changes(name):
    choice = choice_for(example(name))
    assert choice.why
    if name == "sums of doubles":
        assert (choice.protocol, choice.level) == ("recompute", Level.STRONG)
        assert "over doubles" in " ".join(choice.why)
    else:
        assert (choice.protocol, choice.level) == ("batched-sweep", Level.COMPLETE)


def test_the_reasons_speak_of_level_keys_and_sources():
    keyed = " ".join(choice_for(example("join, all keys shown")).why)
    assert "complete" in keyed
    assert "strobe" in keyed
    unkeyed = " ".join(choice_for(example("join, keys left out")).why)
    assert "strobe" not in unkeyed
    assert "eca" in " ".join(choice_for(example("join inside one source")).why)
    assert "nothing is asked" in " ".join(choice_for(example("one relation")).why)


def test_copies_are_kept_by_batched_sweep_alone():
    keep = {"keep": str(example("join, all keys shown").relations[0])}
    choice = choice_for(declared("join, all keys shown", **keep))
    assert choice.protocol == "batched-sweep"
    assert keep["keep"] in " ".join(choice.why)
    named = declared("join, all keys shown", "batched-sweep", **keep)
    assert choice_for(named).protocol == "batched-sweep"
    for more in (
        {"protocol": "strobe"},
        {"protocol": "sweep"},
        {"refresh": "full"},
        {"protocol": "recompute"},
    ):
        error = refused(declared("join, all keys shown", **keep, **more))
        assert error.code == "protocol-not-applicable"
        assert "keep" in error.message


def test_copies_that_would_be_in_vain_are_not_made_and_it_is_said():
    keep = {"keep": str(example("sums of doubles").relations[0])}
    choice = choice_for(declared("sums of doubles", **keep))
    assert choice.protocol == "recompute"
    assert "copies" in " ".join(choice.why)


@pytest.mark.parametrize(
    ("name", "protocol", "words"),
    [
        ("join, all keys shown", "eca", "reads 2 sources"),
        ("join, keys left out", "strobe", "without the keys"),
        ("join, keys left out", "c-strobe", "without the keys"),
        ("UNION ALL", "ring", "2 terms"),
        ("UNION ALL", "quiescent-ring", "2 terms"),
        ("DISTINCT", "ring-terms", "removes duplicates"),
        ("MIN, MAX", "nested-sweep", "groups"),
        ("outer join", "medwrap", "groups"),
        ("sums of doubles", "batched-sweep", "can't be maintained from changes"),
        ("DISTINCT", "sweep", "removes duplicates"),
    ],
)
def test_a_protocol_that_does_not_suit_the_view_is_refused_with_its_reason(name, protocol, words):
    assert words in refused(declared(name, protocol)).message


def test_a_protocol_below_the_declared_level_is_refused():
    definition = declared("join, all keys shown", "strobe", Level.COMPLETE)
    error = refused(definition)
    assert error.code == "protocol-below-level"
    assert "consistency: strong" in error.hint
    assert choice_for(replace(definition, level=Level.STRONG)).protocol == "strobe"


def test_refresh_decides_whether_a_view_is_computed_anew():
    assert choice_for(declared("one relation", refresh="full")).protocol == "recompute"
    assert choice_for(declared("one relation", refresh="incremental")).protocol == "batched-sweep"
    assert choice_for(declared("sums of doubles", refresh="auto")).protocol == "recompute"
    strict = refused(declared("sums of doubles", refresh="incremental-strict"))
    assert strict.code == "not-incremental"
    assert "over doubles" in strict.detail
    assert refused(declared("one relation", "ring", refresh="full")).hint
    both = refused(declared("one relation", "recompute", refresh="incremental-strict"))
    assert both.code == "protocol-not-applicable"


def test_copies_are_for_batched_sweep_alone():
    error = refused(declared("join, all keys shown", "ring", keep="s2.t"))
    assert "only batched-sweep reads copies" in error.detail


def test_sweep_is_the_papers_and_says_what_is_cheaper():
    """It was the word for batched SWEEP once: where SWEEP can't keep a view, the hint says what to write."""
    choice = choice_for(declared("join, all keys shown", "sweep"))
    assert (choice.protocol, choice.is_incremental) == ("sweep", False)
    assert "batched-sweep asks once for many" in " ".join(choice.why)
    grouped = refused(declared("GROUP BY with COUNT, SUM, AVG", "sweep"))
    assert "`-- protocol: batched-sweep`" in grouped.hint
    # What batched SWEEP can't keep either is not sent there.
    assert "batched-sweep" not in refused(declared("sums of doubles", "sweep")).hint


@pytest.mark.parametrize(
    ("text", "seconds"), [("30 s", 30), ("0.5s", 0.5), ("5 min", 300), ("1 h", 3600)]
)
def test_a_period_is_read_with_its_unit(text, seconds):
    assert period_seconds(declared("one relation", "periodic", every=text)) == seconds
    assert period_seconds(declared("one relation", "ring", every=text)) is None


@pytest.mark.parametrize("settings", [{}, {"every": "soon"}, {"every": "0 s"}, {"every": "30"}])
def test_a_periodic_view_must_say_how_often(settings):
    assert refused(declared("one relation", "periodic", **settings)).code == "bad-period"


def test_the_page_of_classes_is_what_the_protocols_say():
    shown = Path(__file__).parents[3] / "docs" / "protocols" / "classes.md"
    assert shown.read_text() == page(), "run make reference"
