"""Batches of a producer that counts them."""

from __future__ import annotations

ALL_FORMATS = [(magic, codec) for magic in (0, 1, 2) for codec in ("none", "lz4")]
