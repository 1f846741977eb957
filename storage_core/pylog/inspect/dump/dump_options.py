"""What is asked of a dump: the options of ``kafka-dump-log``, and those that it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion
from pylog.record.decompression_limit import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.internal_topics.decoders import DumpDecoder

DEFAULT_MAX_MESSAGE_BYTES = 5 << 20
"""Kafka's default of --max-message-size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRange:
    """The records that are wanted; None stands for no end.

    Attributes
    ----------
    start_offset, end_offset
        Inclusive, exclusive.
    start_timestamp, end_timestamp
        In ms; inclusive, exclusive.
    """

    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp: int | None = None
    end_timestamp: int | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether not all records are wanted."""
        return self != RecordRange()

    def has_offsets(
        self, firsts: npt.NDArray[np.int64], lasts: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return of each offset, or of each range of offsets, whether some of it is wanted.

        ``lasts`` are inclusive; None where each is but one offset.
        """
        return _is_within(firsts, lasts, self.start_offset, self.end_offset)

    def has_timestamps(
        self, firsts: npt.NDArray[np.int64], lasts: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.bool_]:
        """Return the same of timestamps."""
        return _is_within(firsts, lasts, self.start_timestamp, self.end_timestamp)


def _is_within(
    firsts: npt.NDArray[np.int64],
    lasts: npt.NDArray[np.int64] | None,
    start: int | None,
    end: int | None,
) -> npt.NDArray[np.bool_]:
    is_in = np.ones(firsts.size, dtype=np.bool_)
    if start is not None:
        is_in &= (firsts if lasts is None else lasts) >= start
    if end is not None:
        is_in &= firsts < end
    return is_in


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """Options of a dump; see `pylog.dump`.

    ``is_deep`` tells that records are looked at, ``prints_data`` that their keys and values are
    printed. ``max_bytes`` is None where there is no limit.
    """

    is_deep: bool = False
    prints_data: bool = False
    skips_record_metadata: bool = False
    max_bytes: int | None = None
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    only_verifies_indexes: bool = False
    only_checks_sanity: bool = False
    decoder: DumpDecoder | None = None
    kafka_version: KafkaVersion = LATEST_KAFKA_VERSION
    output: Literal["text", "jsonl"] = "text"
    values: Literal["base64", "text"] = "base64"
    wanted: RecordRange = RecordRange()
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES

    @property
    def is_json(self) -> bool:
        """Whether lines are JSON objects."""
        return self.output == "jsonl"
