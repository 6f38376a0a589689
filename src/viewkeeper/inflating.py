"""Compressed bytes as what they were, within a bound: what a stream would grow to beyond it is never made."""

from __future__ import annotations

import zlib


def inflated(data: bytes, most: int) -> bytes:
    """All of one whole stream of zlib's; raises ValueError for any other, and for one of more bytes than that."""
    stream = zlib.decompressobj()
    try:
        # One more is asked for, or its end would not be looked at.
        found = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise ValueError(f"it can't be decompressed: {error}") from error
    if len(found) > most:
        raise ValueError(f"it has more than {most} bytes uncompressed")
    if not stream.eof or stream.unused_data:
        raise ValueError("it does not end where its compressed bytes do")
    return found
