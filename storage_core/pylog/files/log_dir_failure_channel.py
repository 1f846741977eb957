"""Which log directories have failed. Source: LogDirFailureChannel (KIP-112; Kafka 4.3).

After a failed write or fsync nobody knows what is on disk, and the system may have dropped pages
that it could not write. So nothing is written into that directory any more; whoever opens it again
recovers it from what is really there.

Only errors of the operating system count (`KafkaStorageError`). An operation that is refused, or a
file whose content is wrong, concerns one log; such errors have other types.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pylog.errors import KafkaStorageError
from pylog.locations import printable_location

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGER = logging.getLogger(__name__)


class LogDirFailureChannel:
    """Remembers the first error of each log directory. Thread-safe."""

    def __init__(self, *, is_logged: bool = True) -> None:
        self._errors: dict[str, KafkaStorageError] = {}
        self._lock = threading.Lock()
        self._is_logged = is_logged

    def is_offline(self, log_directory: str) -> bool:
        """Return whether a write to the directory has failed."""
        return log_directory in self._errors

    def ensure_online(self, log_directory: str) -> None:
        """Raise `KafkaStorageError` if the directory has failed."""
        error = self._errors.get(log_directory)
        if error is not None:
            reason = (
                f"log directory {log_directory} is offline since an I/O error ({error}); mend the "
                "disk, then open the directory again"
            )
            raise KafkaStorageError(reason, log_directory) from error

    def add_offline_log_directory(self, log_directory: str, error: KafkaStorageError) -> None:
        """Note that the directory has failed."""
        with self._lock:
            if log_directory in self._errors:
                return
            self._errors[log_directory] = error
        if self._is_logged:
            _LOGGER.error(
                "log directory %s goes offline: %s", printable_location(log_directory), error
            )

    @contextmanager
    def watching(self, log_directory: str) -> Iterator[None]:
        """Take the directory offline if the block raises `KafkaStorageError`."""
        self.ensure_online(log_directory)
        try:
            yield
        except KafkaStorageError as error:
            self.add_offline_log_directory(log_directory, error)
            raise
