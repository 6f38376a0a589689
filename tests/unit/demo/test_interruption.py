"""Signals are taken where nothing is half done."""

from __future__ import annotations

import signal

import pytest

from viewkeeper.demo.interruption import SIGNALS, Interruption


@pytest.mark.parametrize("number", SIGNALS)
def test_every_signal_that_ends_a_program_interrupts(number):
    with Interruption(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_what_is_deferred_interrupts_at_its_end():
    done = []

    def start_something(interruption):
        with interruption.deferred():
            with interruption.deferred():
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with Interruption() as interruption:
        with pytest.raises(KeyboardInterrupt):
            start_something(interruption)
        assert done == ["inner", "outer"]
        with interruption.deferred():  # told once, it is over
            pass


def test_when_the_end_has_begun_nothing_interrupts():
    with Interruption() as interruption:
        interruption.ignore()
        signal.raise_signal(signal.SIGTERM)


def test_afterwards_signals_mean_what_they_meant_before():
    before = [signal.getsignal(number) for number in SIGNALS]
    with Interruption():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
