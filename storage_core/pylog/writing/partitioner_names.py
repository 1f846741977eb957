"""The partitioners that are chosen by name; what they do is in `pylog.writing.partitioner`.

Apart, since whoever lists them for a user has no other use for Arrow and Numba.
"""

from __future__ import annotations

PARTITIONER_NAMES = ("default", "round_robin", "integer_key")
"""Where records go whose partition is not given; the first is the default everywhere."""
