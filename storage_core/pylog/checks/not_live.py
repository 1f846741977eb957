"""Directories that are not live: a broker loads them like live ones before it looks at their names.

It reads checkpoints for them, too, whose lines are those of the live partition. Of a ``-delete``
directory it loads the segments alone, and does not look for the end of the log. What becomes of
``-future`` directories stands in `pylog.checks.future_logs`.

Source: LogManager.loadLog (Kafka 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.checks.broker_start import broker_start, deletion_refusal
from pylog.checks.partition import check_partition
from pylog.errors import LogStorageError
from pylog.files import disk
from pylog.files.file_names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
)
from pylog.findings import kinds
from pylog.findings.finding import Finding, Severity
from pylog.locations import is_remote
from pylog.reading.log_view import LogView
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from pylog.checks.absent_partitions import Held
    from pylog.checks.permissions import BrokerUsers
    from pylog.files.file_user import FileUser
    from pylog.reading.discovery import PartitionDirectory
    from pylog.writing.node import Node


@dataclass(frozen=True, slots=True)
class NotLiveDirectory:
    """A directory that is not live.

    ``has_live`` tells that its node has a live directory of the partition, ``becomes_live`` that it
    takes the place of that.
    """

    view: LogView
    has_live: bool
    becomes_live: bool = False
    user: FileUser | None = None

    @property
    def is_only_loaded(self) -> bool:
        """Whether nobody needs what is in it: it is being deleted, or a copy of the live one."""
        state = self.view.directory.state
        is_copy = state == FUTURE_DIR_SUFFIX and self.has_live and not self.becomes_live
        return state == DELETE_DIR_SUFFIX or is_copy

    @property
    def size_bytes(self) -> int:
        """The bytes that the check will read, for the progress bar; 0 if it only loads the log."""
        try:
            return 0 if self.is_only_loaded else self.view.size_bytes
        except LogStorageError:
            return 0  # a finding

    def findings(
        self,
        *,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        on_bytes: Callable[[int], None] | None = None,
    ) -> list[Finding]:
        """Return the errors in it; other findings are about what a live partition has.

        A broker that is running renames and removes it: nothing is wrong with what is gone.
        """
        path = self.view.directory.path
        try:
            if self.view.directory.state == DELETE_DIR_SUFFIX:
                refusal = deletion_refusal(self.view, self.user)
                found = [] if refusal is None else [refusal]
            elif self.is_only_loaded:
                start = broker_start(self.view, 0, user=self.user)
                found = [] if start is None or start.refusal is None else [start.refusal]
            else:
                check = check_partition(
                    self.view,
                    user=self.user,
                    max_decompressed_bytes=max_decompressed_bytes,
                    on_bytes=on_bytes,
                )
                losses = () if check.start is None else check.start.losses
                found = [*(each for each in losses if each not in check.findings), *check.findings]
        except LogStorageError:
            return []
        if not is_remote(path) and not disk.is_dir(path):
            return []
        return [each for each in found if self._is_its_own(each)]

    def _is_its_own(self, finding: Finding) -> bool:
        """Whether a finding is an error, and not made of the live partition's offsets."""
        path = self.view.directory.path
        is_below = finding.path == path or finding.path.startswith(f"{path}/")
        is_of_live = self.has_live and finding.kind == kinds.MISSING_SEGMENT
        is_wrong = finding.severity is Severity.ERROR
        if self.becomes_live:  # then consumers get what is in it
            is_wrong = is_wrong or finding.effect is not None
        return is_wrong and is_below and not is_of_live


def not_live_directories(
    directories: Iterable[PartitionDirectory],
    nodes: Mapping[str, Node],
    held: Container[Held],
    users: BrokerUsers,
) -> list[NotLiveDirectory]:
    """Return what is looked at of directories that are not live."""
    found = []
    for each in directories:
        view, node = LogView(each), nodes[each.log_directory]
        becomes_live = (
            each.state == FUTURE_DIR_SUFFIX
            and node.is_placed_in(each.log_directory, each.topic_partition)
            and not node.is_set_aside(each.topic_partition, each.path)
        )
        has_live = (node, each.topic_partition) in held
        user = users.of(each.log_directory)
        found.append(NotLiveDirectory(view, has_live, becomes_live, user))
    return found
