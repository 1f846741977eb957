"""Files of a bucket or container of a running server, written past what is under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow.fs as pa_fs


class StoredFiles:
    """A bucket, made if it is missing."""

    def __init__(self, file_system: pa_fs.FileSystem, bucket: str) -> None:
        self.file_system = file_system
        self.bucket = bucket
        file_system.create_dir(bucket)

    def write(self, key: str, content: bytes) -> None:
        """Make or replace an object."""
        with self.file_system.open_output_stream(f"{self.bucket}/{key}") as stream:
            stream.write(content)

    def remove(self, key: str) -> None:
        """Delete an object."""
        self.file_system.delete_file(f"{self.bucket}/{key}")

    def upload(self, directory: Path, prefix: str) -> None:
        """Copy the files below a directory; empty directories do not exist in a store."""
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.write(f"{prefix}/{path.relative_to(directory).as_posix()}", path.read_bytes())
