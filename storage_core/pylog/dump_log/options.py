"""What is asked of a dump: the options of ``kafka-dump-log``, and ranges of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.internal_topics.decoders import DumpDecoder
    from pylog.internal_topics.versions import KafkaVersion

    Int64Array = npt.NDArray[np.int64]


DEFAULT_MAX_MESSAGE_BYTES = 5 << 20
"""Kafka's default of --max-message-size."""


class RecordRange(NamedTuple):
    """The records that are wanted: starts are inclusive, ends exclusive, None is no end."""

    start_offset: int | None
    end_offset: int | None
    start_timestamp: int | None
    end_timestamp: int | None

    @property
    def is_restricted(self) -> bool:
        """Whether not all records are wanted."""
        return any(each is not None for each in self)

    def has_offsets(
        self, firsts: Int64Array, lasts: Int64Array | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return of each offset, or range of offsets up to its last one, whether any is wanted."""
        return _is_within(firsts, lasts, self.start_offset, self.end_offset)

    def has_timestamps(
        self, firsts: Int64Array, lasts: Int64Array | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return the same of timestamps."""
        return _is_within(firsts, lasts, self.start_timestamp, self.end_timestamp)


def _is_within(
    firsts: Int64Array, lasts: Int64Array | None, start: int | None, end: int | None
) -> npt.NDArray[np.bool_]:
    is_in = np.ones(firsts.size, dtype=np.bool_)
    if start is not None:
        is_in &= (firsts if lasts is None else lasts) >= start
    if end is not None:
        is_in &= firsts < end
    return is_in


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """Options of a dump; see `pylog.dump`."""

    is_deep: bool  # records are looked at
    prints_data: bool  # and their keys and values printed
    skips_record_metadata: bool
    max_bytes: int | None
    max_message_bytes: int
    only_verifies_indexes: bool
    only_checks_sanity: bool
    decoder: DumpDecoder | None
    kafka_version: KafkaVersion
    is_json: bool
    values: Literal["base64", "text"]
    wanted: RecordRange
    max_decompressed_bytes: int
