"""What is not needed any more is given back, and what comes is not more than is needed."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from viewkeeper.live.process_memory import allow_huge_pages, give_back

STATUS = Path("/proc/self/status")


class Ring:
    def __init__(self) -> None:
        self.me = self


def test_garbage_that_nobody_looks_for_is_let_go():
    gc.disable()
    try:
        seen = weakref.ref(Ring())
        assert seen() is not None
        give_back()
        assert seen() is None
    finally:
        gc.enable()


@pytest.mark.skipif(not STATUS.exists(), reason="only Linux tells")
def test_huge_pages_are_refused_for_as_long_as_it_is_asked():
    def refused() -> bool:
        told = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return told["THP_enabled"].strip() == "0"

    before = allow_huge_pages(False)
    try:
        assert refused()
        assert allow_huge_pages(True) is False
        assert not refused()
    finally:
        allow_huge_pages(before)
