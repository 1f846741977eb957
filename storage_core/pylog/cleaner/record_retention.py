"""Which records of a batch stay.

========================================= ==========================================================
record                                    stays
========================================= ==========================================================
of a batch that drops its records         never
of a control batch                        always
above the offset map's end                always: there may be later ones of its key, unknown
without a key                             never
that the map has a later one for          never
with a value                              always
without a value (a tombstone)             until the batch's delete horizon, if it has one; in v0 and
                                          v1, unless the segment is older than tombstones are kept
========================================= ==========================================================

Source: Cleaner.shouldRetainRecord (Kafka 4.3; KAFKA-8522).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pylog.cleaner.batch_retention import has_horizon

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.cleaner.batch_retention import BatchRetention
    from pylog.cleaner.keyed_records import KeyedRecords
    from pylog.cleaner.offset_map import HashKey

    Int64Array = npt.NDArray[np.int64]
    BoolArray = npt.NDArray[np.bool_]


class LatestRecords(Protocol):
    """What knows the last record of each key: an offset map, or what the keys' owner found.

    Attributes
    ----------
    latest_offset
        Up to here, inclusive, it knows all keys.
    hash_key
        What keys are hashed with for it.
    """

    latest_offset: int
    hash_key: HashKey

    def are_latest(self, offsets: Int64Array, hashes: Int64Array, rows: Int64Array) -> BoolArray:
        """Return for some records with keys whether there is no later one of the same key."""
        ...


class RetainedRecords(NamedTuple):
    """Which records of a group stay, and how many had no key where one is needed."""

    kept: BoolArray
    invalid_count: int


def retained_records(
    records: KeyedRecords,
    retention: BatchRetention,
    latest: LatestRecords,
    now_ms: int,
    *,
    keeps_legacy_tombstones: bool,
) -> RetainedRecords:
    """Return which records stay.

    Parameters
    ----------
    records
        Of some batches of a window, hashed up to the map's end.
    retention
        Of all batches of the window.
    latest
        The last record of each key.
    now_ms
        When the cleaning began.
    keeps_legacy_tombstones
        Whether tombstones of formats v0 and v1 stay.
    """
    headers, has_key = records.headers, records.has_key
    by_rule = records.offsets <= latest.latest_offset
    # By batch, then by record.
    drops = retention.drops_records[records.batches]
    keeps = headers.is_control & ~drops
    keeps_tombstones = np.where(
        headers.is_v2,
        ~has_horizon(headers) | (now_ms < headers.base_timestamps),
        keeps_legacy_tombstones,
    )
    counts = records.batch_ends - records.batch_starts
    if (drops | keeps).any():
        by_rule &= ~np.repeat(drops | keeps, counts)
    kept = ~by_rule
    looked_up = np.flatnonzero(by_rule & has_key)
    is_latest = latest.are_latest(records.offsets, records.hashes, looked_up)
    if keeps_tombstones.all():
        kept[looked_up] = is_latest
    else:
        may_be_null = np.repeat(keeps_tombstones, counts)
        kept[looked_up] = is_latest & (records.has_value | may_be_null)[looked_up]
    if drops.any():
        kept &= ~np.repeat(drops, counts)
    return RetainedRecords(kept, int((by_rule & ~has_key).sum()))
