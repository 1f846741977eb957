"""Rows and records from users to owned logs: topics, partitions, batches, appends.

The names of partitioners are here: whoever lists them for a user needs neither Arrow nor Numba.
"""

from __future__ import annotations

PARTITIONER_NAMES = ("default", "round_robin", "integer_key")
"""Where records go whose partition is not given; the first is the default everywhere."""

KEY_PARTITIONER_NAMES = (
    *("default", "integer_key", "murmur2", "murmur2_random"),
    *("consistent", "consistent_random", "fnv1a", "fnv1a_random"),
)
"""Whose choice of a key's partition is known: pylog's own, and librdkafka's ``partitioner``."""
