"""The manager of a log directory that is opened for changes, and closed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.log_dir_failure_channel import LogDirFailureChannel
from pylog.files.owned_directories import writable_log_directory
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pylog.config import LogConfig
    from pylog.config.server_properties import ServerProperties


def own_log_directory(
    path: str | os.PathLike[str],
    *,
    must_exist: bool = False,
    server_properties: ServerProperties | None = None,
    topic_configs: Mapping[str, LogConfig] | None = None,
    context: LogContext | None = None,
) -> LogManager:
    """Return the manager of one log directory; it owns the directory within its ``with`` block.

    Parameters
    ----------
    path
        As for `writable_log_directory`.
    must_exist
        Whether it is an error if the directory does not exist; otherwise it is created.
    server_properties
        What a broker's file says, which the logs are then configured to; Kafka's defaults if None.
        A directory that is not among its log directories gets a warning.
    topic_configs
        Of single topics; they win over what is stored.
    context
        The clock, the disk and the background work; the real ones if None. A failure of the disk is
        then not logged as well, since whatever is done in the block raises it.

    Raises
    ------
    LogDirectoryError, ValueError
        See `writable_log_directory`. Entering the block raises what `LogManager.startup` does.
    """
    local = writable_log_directory(path, must_exist=must_exist)
    context = context or LogContext(failures=LogDirFailureChannel(is_logged=False))
    if server_properties is None:
        return LogManager([local], topic_configs=topic_configs, context=context)
    server_properties.warn_unless_log_dir(local)
    return LogManager(
        [local],
        server_properties.log_config,
        topic_configs=topic_configs,
        manager_config=server_properties.manager_config,
        context=context,
    )
