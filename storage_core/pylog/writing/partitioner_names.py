"""The partitioners that are chosen by name; what they do is in `pylog.writing.partitioner`.

Apart, since whoever lists them for a user has no other use for Arrow and Numba.
"""

from __future__ import annotations

PARTITIONER_NAMES = ("default", "round_robin", "integer_key")
"""Where records go whose partition is not given; the first is the default everywhere."""

KEY_PARTITIONER_NAMES = (
    *("default", "integer_key", "murmur2", "murmur2_random"),
    *("consistent", "consistent_random", "fnv1a", "fnv1a_random"),
)
"""Whose choice of a key's partition is known: pylog's own, and librdkafka's ``partitioner``."""
