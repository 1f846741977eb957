"""What `pylog.repair_copy` returns: values that load neither Arrow nor NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.inspect.doctor_report import DoctorReport
    from pylog.model import TopicPartition


@dataclass(frozen=True, slots=True)
class RepairedPartition:
    """The copy of one partition.

    Attributes
    ----------
    topic_partition, path
        Which, and where the copy lies.
    copied_bytes, left_out_bytes
        Of the ``.log`` files.
    end_offset
        The end of the copy, exclusive.
    """

    topic_partition: TopicPartition
    path: str
    copied_bytes: int
    left_out_bytes: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class RepairSummary:
    """What was found, and what was copied.

    Attributes
    ----------
    directory
        The log directory that was made.
    source
        What is wrong with the logs that were copied.
    partitions
        The copies, in the order of the source's.
    copy
        What is wrong with the copy: gaps are left where damage was.
    left_out
        Partitions that are not copied: the log of a controller.
    """

    directory: str
    source: DoctorReport
    partitions: list[RepairedPartition]
    copy: DoctorReport
    left_out: list[TopicPartition]

    @property
    def copied_bytes(self) -> int:
        """Of all ``.log`` files."""
        return sum(each.copied_bytes for each in self.partitions)

    @property
    def left_out_bytes(self) -> int:
        """Of all ``.log`` files."""
        return sum(each.left_out_bytes for each in self.partitions)
