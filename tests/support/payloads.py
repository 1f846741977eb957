"""Payloads as decoders take them: one after the other, or with other bytes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.typed.decoder import Payloads

if TYPE_CHECKING:
    from collections.abc import Sequence


def payloads_of(texts: Sequence[bytes], *, between: bytes = b"", behind: bytes = b"") -> Payloads:
    """Return payloads that hold the texts."""
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    ends = np.cumsum(lengths + len(between))
    joined = b"".join(between + text for text in texts) + behind
    return Payloads(np.frombuffer(joined, dtype=np.uint8), ends - lengths, ends)
