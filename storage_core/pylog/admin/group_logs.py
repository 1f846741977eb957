"""The logs that groups read: where they start and end, and which topics they are of."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from pylog.admin.share_groups import DEAD_LETTER_TOPIC_CONFIG
from pylog.checks.consumers import UNKNOWN_RANGE, LogRange
from pylog.files.partition_metadata import ZERO_UUID, format_uuid
from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType
from pylog.model import IsolationLevel, TopicPartition
from pylog.reading.damage import Attempts
from pylog.reading.log_view import read_unless_deleted
from pylog.reading.offset_resolution import find_offset_for_timestamp
from pylog.reading.transactions import find_last_stable_offset

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from pylog.internal_topics.metadata_image import MetadataImage
    from pylog.reading.log_directory import LogDirectory
    from pylog.reading.log_view import LogView

_Value = TypeVar("_Value")


class GroupLogs:
    """The logs that groups read, each looked at once."""

    def __init__(
        self,
        directory: LogDirectory,
        image: MetadataImage,
        at_ms: int | None,
        isolation: IsolationLevel,
    ) -> None:
        self.attempts = Attempts()
        self._directory = directory
        self._image = image
        self._at_ms = at_ms
        self._is_committed = isolation is IsolationLevel.READ_COMMITTED
        self._ranges: dict[TopicPartition, tuple[int | None, int | None]] = {}
        self._whole_ranges: dict[TopicPartition, LogRange] = {}
        self._names: dict[uuid.UUID, str] | None = None

    def name_of(self, topic_id: uuid.UUID) -> str:
        """Return the name of a topic; its id as text if neither logs nor metadata here have it."""
        if self._names is None:
            ids = {self._topic_id(each[0]): name for name, each in self._directory.topics.items()}
            self._names = {each.topic_id: each.name for each in self._image.topics}
            self._names |= {found: name for found, name in ids.items() if found is not None}
        return self._names.get(topic_id, format_uuid(topic_id))

    def dead_letter_topic(self, group_id: str) -> str | None:
        """Return where a share group's undeliverable records go; None if nothing says it."""
        configs = self._image.configs_of(ConfigResource(ConfigResourceType.GROUP, group_id))
        return configs.get(DEAD_LETTER_TOPIC_CONFIG) or None

    def range_of(
        self, where: TopicPartition, topic_id: uuid.UUID | None
    ) -> tuple[int | None, int | None]:
        """Return start and end of a log; None where it is not here, or is another topic's."""
        if where not in self._directory or self.is_another_topic(where, topic_id):
            return None, None
        view = self._directory[where]
        if where not in self._ranges:
            start = self._read(view, attrgetter("log_start_offset"))
            self._ranges[where] = start, self._read(view, self._end)
        return self._ranges[where]

    def whole_range_of(self, where: TopicPartition) -> LogRange | None:
        """Return start and end of a log as it is now, to its last record; None if it is not here.

        `UNKNOWN_RANGE` if it cannot be read.
        """
        if where not in self._directory:
            return None
        if where not in self._whole_ranges:
            view = self._directory[where]
            found = self._read(view, lambda it: LogRange(it.log_start_offset, it.log_end_offset))
            self._whole_ranges[where] = UNKNOWN_RANGE if found is None else found
        return self._whole_ranges[where]

    def is_another_topic(self, where: TopicPartition, topic_id: uuid.UUID | None) -> bool:
        """Whether the topic that is here now has another id."""
        if topic_id is None or topic_id == ZERO_UUID or where not in self._directory:
            return False
        return self._topic_id(self._directory[where]) not in (None, topic_id)

    def _end(self, view: LogView) -> int:
        end = find_last_stable_offset(view) if self._is_committed else view.log_end_offset
        if self._at_ms is None:
            return end
        later = find_offset_for_timestamp(view, self._at_ms + 1)
        return end if later is None else min(end, later.offset)

    def _read(self, view: LogView, read: Callable[[LogView], _Value]) -> _Value | None:
        # As it is now: where a group has read to, there was something when its position was read.
        return self.attempts.read(partial(read_unless_deleted, view.refreshed(), read, None))

    def _topic_id(self, view: LogView) -> uuid.UUID | None:
        metadata = self.attempts.read(lambda: view.metadata)
        return None if metadata is None else metadata.topic_id
