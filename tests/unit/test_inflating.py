"""Compressed texts of our own files grow no further than their bound, and are refused by name beyond it."""

from __future__ import annotations

import base64
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.inflating import inflated
from viewkeeper.views import storing
from viewkeeper.views.storing import definition_from_text
from viewkeeper.warehouse import places
from viewkeeper.warehouse.entries import understood
from viewkeeper.warehouse.places import Places

MIB = 1 << 20


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()


def text(content: bytes) -> str:
    return base64.b64encode(content).decode()


@contextmanager
def within(bytes_max: int) -> Iterator[None]:
    """No more memory than this is asked for inside."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < bytes_max
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 1, 1_000])
def test_a_whole_stream_within_its_bound_is_what_it_was(size: int) -> None:
    assert inflated(zlib.compress(b"x" * size), size) == b"x" * size


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no stream",
        zlib.compress(b"x" * 100)[:-1],
        zlib.compress(b"x" * 100) + b"x",
        zlib.compress(b"x" * 101),
    ],
)
def test_any_other_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        inflated(content, 100)


def test_a_definition_that_grows_without_end_is_refused_by_name() -> None:
    content = text(bomb(16 * storing.TEXT_BYTES_MAX))
    with within(4 * storing.TEXT_BYTES_MAX), pytest.raises(UsageError) as caught:
        definition_from_text(content)
    assert caught.value.code == "definition-unreadable"


def test_a_definition_that_is_too_deep_is_refused_by_name() -> None:
    with pytest.raises(UsageError) as caught:
        definition_from_text(text(zlib.compress(b"[" * 100_000 + b"]" * 100_000)))
    assert caught.value.code == "definition-unreadable"


@pytest.mark.parametrize(
    "content",
    [bomb(8 * places.UNPACKED_BYTES_MAX), b"no stream", zlib.compress(bytes(9))],
    ids=["bomb", "no stream", "half a number"],
)
def test_places_that_grow_without_end_or_are_none_are_refused_by_name(content: bytes) -> None:
    source = {"history": "h", **dict.fromkeys(("states", "majors", "minors"), text(content))}
    document = json.dumps({"views": ["v"], "sources": {"shop": source}})
    with (
        within(3 * places.UNPACKED_BYTES_MAX),
        pytest.raises(WarehouseError) as caught,
        understood(),
    ):
        Places.decoded(document)
    assert caught.value.code == "ledger-unreadable"
