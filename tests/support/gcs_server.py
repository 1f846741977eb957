"""A real server of Google Cloud Storage's protocol on loopback, and directories in its buckets.

The server is ``gcp-storage-emulator``, a program in Python that the developers' extra installs. It
takes a request at a time, any credentials or none, and does not mind the generation of an object
that a read asks for, as Google does: what is replaced is noticed by us or not at all.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from datetime import timedelta

import pyarrow.fs as pa_fs

from tests.support.server_program import HOST, ServerProgram, free_port
from tests.support.stored_files import StoredFiles

IS_INSTALLED = importlib.util.find_spec("gcp_storage_emulator") is not None
WHY_NOT = "gcp-storage-emulator is not installed; it is among the developers' tools"
STORE_VARIABLES = (
    "STORAGE_EMULATOR_HOST",
    "CLOUD_STORAGE_EMULATOR_ENDPOINT",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT",
)
_PROGRAM = ("gcp_storage_emulator", "start", "--in-memory")


class GcsServer(ServerProgram):
    """The emulator, with all it holds in memory."""

    def __init__(self) -> None:
        port = free_port()
        super().__init__(
            "the GCS server",
            [sys.executable, "-u", "-m", *_PROGRAM, f"--host={HOST}", f"--port={port}"],
            os.environ,
            r"Starting server at [\w.]+:(\d+)",
        )

    @property
    def storage_options(self) -> dict[str, object]:
        """What leads to it."""
        return {"anonymous": True, "endpoint_override": self.endpoint, "scheme": "http"}

    def downloads(self, suffix: str) -> int:
        """Return how many requests for the content of files of a kind there were."""
        return sum("alt=media" in line and f"{suffix}?" in line for line in self.lines)

    def files(self, bucket: str) -> StoredFiles:
        """Return a bucket."""
        file_system = pa_fs.GcsFileSystem(
            anonymous=True,
            endpoint_override=self.endpoint,
            scheme="http",
            project_id="test",
            retry_time_limit=timedelta(seconds=20),
        )
        return StoredFiles(file_system, bucket)
