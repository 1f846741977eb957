"""Where ranges of offsets end if only so many bytes of them are to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.reading.splitting import first_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.model import TopicPartition
    from pylog.reading.scan_task import ScanTask


def ends_within_bytes(tasks: Iterable[ScanTask], max_bytes: int) -> dict[TopicPartition, int]:
    """Return where each partition's range ends if about ``max_bytes`` are read of all together.

    Each gets a share in proportion to its bytes. A range ends after a whole batch that the offset
    index knows, and holds one batch at least: that much there may be more than ``max_bytes``.

    Parameters
    ----------
    tasks
        Of `Scan.plan`, one for each partition.
    max_bytes
        Bytes of ``.log`` files, 1 or more.

    Returns
    -------
    dict
        The offset after the last one, by partition.
    """
    tasks = list(tasks)
    total = sum(task.size_bytes for task in tasks)
    if total <= max_bytes:
        return {task.topic_partition: task.end_offset for task in tasks}
    return {
        task.topic_partition: first_part(
            task, max(1, max_bytes * task.size_bytes // total)
        ).end_offset
        for task in tasks
    }
