"""What the windows of one ``.log`` file have in common while they are dumped."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pylog.columnar.arrow_schema import record_schema
from pylog.columnar.decode import RecordDecoder
from pylog.inspect.dump.log_lines import batch_and_record_lines
from pylog.inspect.dump.record_details import RecordDetails
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from pylog.inspect.dump.dump_options import DumpOptions

_COLUMNS = ("offset", "timestamp", "key", "value", "headers")
_NOWHERE = TopicPartition("", 0)  # no column names it


class Decoders:
    """Decoders that are used again and again, each by one thread at a time; they keep memory.

    Any number of threads may use it.
    """

    def __init__(self, max_decompressed_bytes: int) -> None:
        self._idle: deque[RecordDecoder] = deque()
        self._max_decompressed_bytes = max_decompressed_bytes
        self._schema = record_schema(columns=_COLUMNS, timestamp_unit="ms")

    def take(self) -> RecordDecoder:
        """Return a decoder that nobody else has."""
        try:
            decoder = self._idle.pop()
        except IndexError:
            return RecordDecoder(
                _NOWHERE, self._schema, max_decompressed_bytes=self._max_decompressed_bytes
            )
        decoder.restart(-1)
        return decoder

    def give_back(self, decoder: RecordDecoder) -> None:
        """Take back a decoder; nobody looks at what it decoded any more."""
        self._idle.append(decoder)


class LogContext:
    """A file's name, the form of its lines, and what makes them.

    Parameters
    ----------
    path
        As it is printed and named in errors.
    options
        Of the dump.
    decoders
        Of all its files.
    """

    def __init__(self, path: str, options: DumpOptions, decoders: Decoders) -> None:
        self.path = path
        self.options = options
        self.decoders = decoders
        self.template = batch_and_record_lines(options, path)
        self.details = RecordDetails(options)
