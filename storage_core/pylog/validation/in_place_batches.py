"""Which batches of a client a leader appends as they are, but for the header fields it assigns.

These are the usual ones: v2, without a producer, in the topic's codec, keeping to every rule
of the topic. The rules are those of `analyze_records` and `LogValidator`, evaluated for many
batches at once. Any other batch may be right as well: it is appended, or refused, by these
two.

Source: LogValidator, ``inPlaceAssignment`` (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.model import CompressionType, TimestampType
from pylog.record.batch_header import (
    COMPRESSION_CODEC_MASK,
)
from pylog.validation.record_rules import TimestampRange, size_rules

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.config import LogConfig
    from pylog.record.batch_scan import BatchHeaders
    from pylog.validation.record_summary import BatchSummaries

    Int64Array = npt.NDArray[np.int64]
    BoolArray = npt.NDArray[np.bool_]


def may_stay_in_place(headers: BatchHeaders, config: LogConfig) -> BoolArray:
    """Mask the batches whose headers say nothing against it."""
    counts = headers.record_counts
    most_bytes = min(each.most_bytes for each in size_rules(config))
    stays = np.zeros(COMPRESSION_CODEC_MASK + 1, dtype=np.bool_)
    for codec in CompressionType:
        stays[codec] = config.target_compression_type(codec) is codec
    mask: BoolArray = (
        headers.is_v2
        & (headers.offsets == 0)
        & (headers.sizes_bytes <= most_bytes)
        # Neither control batches nor transactional ones, nor any stamped by a broker.
        & (headers.attributes & ~COMPRESSION_CODEC_MASK == 0)
        & stays[headers.codec_ids]
        & (headers.producer_ids < 0)
        & (counts > 0)
        & (headers.last_offsets == counts - 1)
    )
    return mask


def stays_in_place(
    headers: BatchHeaders, summaries: BatchSummaries, config: LogConfig, now_ms: int
) -> BoolArray:
    """Mask the batches whose records, too, say nothing against it."""
    mask: BoolArray = np.ones(len(summaries), dtype=np.bool_)
    if config.is_compact:
        mask &= summaries.null_keys == 0
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        lowest, highest = summaries.lowest_timestamps, summaries.highest_timestamps
        mask &= lowest >= 0
        allowed = TimestampRange.at(now_ms, config)
        mask &= (lowest >= allowed.lowest) & (highest <= allowed.highest)
        # Another one is put right, and the checksum with it.
        mask &= headers.max_timestamps[: mask.size] == highest
    return mask
