"""`GroupCoordinatorService`: the group coordinator of a server, from its start to its end.

The groups of the directory are read in the background: whoever asks for a group before waits.

Source: GroupCoordinatorService (Kafka 4.4), which answers COORDINATOR_LOAD_IN_PROGRESS meanwhile.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pylog.errors import (
    InvalidConfigurationError,
    LogStorageError,
    UnknownTopicOrPartitionError,
)
from pylog.files.storage import list_directory
from pylog.lazy_modules import LazyModule
from pylog.server.group_config import CoordinatorTimer, GroupCoordinatorConfig
from pylog.server.group_coordinator import GroupCoordinator
from pylog.server.offset_metadata_manager import OffsetMetadataManager, OffsetsFile
from pylog.server.rate_limited_log import server_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.admin import consumer_groups
    from pylog.admin.consumer_groups import GroupListing
    from pylog.config.server_properties import ServerProperties
    from pylog.server.metadata_cache import MetadataCache
    from pylog.server.metrics import Metrics
    from pylog.server.protocol import Api, Handler, Request, RequestContext
else:
    # It brings Arrow along, which a server of other topics does without.
    consumer_groups = LazyModule("pylog.admin.consumer_groups")

_LOGGER = server_logger(__name__)
_COUNT_MS = 1_000
_OFFSETS_DIRECTORY = "__consumer_offsets-"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Where commits are kept, as of when groups are served, and their limits."""

    offsets: str | os.PathLike[str] | None = None  # the file of what is committed; None: in memory
    at_ms: int | None = None  # groups are served as they were at this instant; None for now
    config: GroupCoordinatorConfig = field(default_factory=GroupCoordinatorConfig)

    def ensure_outside(self, directories: Iterable[str | os.PathLike[str]]) -> None:
        """Raise `InvalidConfigurationError` if the file would lie in a served directory."""
        if self.offsets is None:
            return
        resolved = Path(self.offsets).resolve()
        for directory in directories:
            if resolved.is_relative_to(Path(directory).resolve()):
                reason = (
                    f"the file of offsets lies in the served directory {directory}, where nothing "
                    "is ever changed: give a file outside of it"
                )
                raise InvalidConfigurationError(reason, self.offsets)


class GroupCoordinatorService:
    """Starts and ends a `GroupCoordinator`. One thread, that of the event loop.

    ``metrics`` gets the number of groups with members from time to time.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        metadata: MetadataCache,
        options: GroupOptions,
        server_properties: ServerProperties | None,
        metrics: Metrics,
    ) -> None:
        self._paths = paths
        self._options = options
        self._server_properties = server_properties
        self._metrics = metrics
        self._metadata = metadata
        self._file: OffsetsFile | None = None
        self._timer: CoordinatorTimer | None = None
        self._loading: asyncio.Task[None] | None = None
        self._is_loaded = asyncio.Event()
        self._coordinator: GroupCoordinator | None = None

    @property
    def coordinator(self) -> GroupCoordinator:
        """The coordinator, once the service has been started."""
        if self._coordinator is None:
            raise RuntimeError("the service has not been started")
        return self._coordinator

    def start(self) -> None:
        """Open the file of offsets, and begin to read the groups of the directory."""
        loop = asyncio.get_running_loop()
        if self._options.offsets is not None:
            self._file = OffsetsFile(self._options.offsets)
            self._file.__enter__()
        self._timer = CoordinatorTimer(loop)
        self._coordinator = GroupCoordinator(
            self._metadata,
            self._timer,
            OffsetMetadataManager(self._file),
            self._metadata.node,
            self._options.config,
        )
        self._loading = loop.create_task(self._load())
        self._count(self._timer)

    def handlers(self) -> dict[Api, Handler]:
        """Return what answers each API, once the groups have been read."""
        return {api: self._waiting(each) for api, each in self.coordinator.handlers().items()}

    def _waiting(self, handler: Handler) -> Handler:
        async def handle(request: Request, context: RequestContext) -> Any:  # noqa: ANN401 - as the handler
            await self._is_loaded.wait()
            answer = handler(request, context)
            return await answer if inspect.isawaitable(answer) else answer

        return handle

    def _count(self, timer: CoordinatorTimer) -> None:
        self._metrics.groups = self.coordinator.active_group_count
        timer.schedule("count", _COUNT_MS, lambda: self._count(timer))

    async def _load(self) -> None:
        try:
            self.coordinator.load(await asyncio.to_thread(self._listing))
        finally:
            self._is_loaded.set()

    def _listing(self) -> GroupListing | None:
        """Return the groups of the directory; None if it has none."""
        try:
            if not any(map(_may_have_groups, self._paths)):
                self._say_that_there_are_none()
                return None
            listing = consumer_groups.groups(
                *self._paths, at_ms=self._options.at_ms, server_properties=self._server_properties
            )
        except UnknownTopicOrPartitionError:
            self._say_that_there_are_none()
            return None
        except LogStorageError as error:
            message = "committed offsets cannot be read, groups begin without them: %s"
            _LOGGER.error(message, error)  # noqa: TRY400 - where in the code is no news
            return None
        for damage in listing.errors:
            _LOGGER.warning("committed offsets may be missing: %s", damage)
        for stale in listing.stale:
            _LOGGER.warning("committed offsets are ignored: %s", stale)
        lost = sum(offset.offset is None for group in listing.groups for offset in group.offsets)
        if lost:
            _LOGGER.warning(
                "%d committed offsets of that time have been removed by compaction since: their "
                "partitions have none",
                lost,
            )
        return listing

    def _say_that_there_are_none(self) -> None:
        level = logging.INFO if self._options.at_ms is None else logging.WARNING
        _LOGGER.log(level, "no committed offsets are in the directory: groups begin without them")

    async def close(self) -> None:
        """Answer the clients that wait, store the last commits, and close the file."""
        if self._loading is not None:
            self._loading.cancel()
        if self._coordinator is not None:
            await self._coordinator.close()
        if self._timer is not None:
            self._timer.close()
        if self._file is not None:
            self._file.__exit__(None, None, None)


def _may_have_groups(path: str | os.PathLike[str]) -> bool:
    """Whether a log directory, or directory of a partition, has committed offsets."""
    names = [Path(path).name, *(entry.name for entry in list_directory(os.fspath(path)))]
    return any(name.startswith(_OFFSETS_DIRECTORY) for name in names)
