"""A file in memory, with a tail of zeros that costs nothing."""

from __future__ import annotations

from pylog.files.byte_source import ByteSource


class ByteFile(ByteSource):
    """``content``, and ``zeros`` zero bytes after it."""

    __slots__ = ("_content", "_size", "path")

    def __init__(self, content: bytes, zeros: int = 0) -> None:
        self.path = "in memory"
        self._content = content
        self._size = len(content) + zeros

    def size(self) -> int:
        return self._size

    def read_at(self, position: int, length: int) -> bytes:
        assert position >= 0
        assert length >= 0
        length = min(length, max(0, self._size - position))
        return self._content[position : position + length].ljust(length, b"\0")

    def read_into(self, position: int, buffer: memoryview) -> int:
        data = self.read_at(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def next_data(self, position: int) -> int | None:
        return position if position < self._size else None

    def close(self) -> None:
        pass
