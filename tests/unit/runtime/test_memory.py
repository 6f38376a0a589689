"""What is not needed any more is given back."""

from __future__ import annotations

import gc
import weakref

from viewkeeper.runtime.memory import give_back


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
