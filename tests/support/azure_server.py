"""A real server of Azure's blob protocol on loopback, and directories in its containers.

The server is Azurite, Microsoft's own emulator, which checks keys and signatures;
`tests.support.azurite` finds it.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

import pyarrow.fs as pa_fs

from tests.support.server_program import HOST, ServerProgram
from tests.support.stored_files import StoredFiles

if TYPE_CHECKING:
    from pathlib import Path

ACCOUNT = "devstoreaccount1"
KEY = (  # Azurite's own, which its documentation names; opens nothing else
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
STORE_VARIABLES = (
    "AZURE_STORAGE_ACCOUNT",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
)
# Newer versions of Azure's protocol, which Arrow's library speaks, are not refused.
_ARGUMENTS = ("--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--loose")
_BYTES = re.compile(r'"GET \S+/(\S+?)(?:\?\S*)? HTTP/1\.1" 206 (\d+)')


class AzureServer(ServerProgram):
    """Azurite on a free port, with all it holds in memory.

    Parameters
    ----------
    program
        ``azurite-blob``.
    """

    def __init__(self, program: Path) -> None:
        super().__init__(
            "Azurite",
            [str(program), *_ARGUMENTS, "--blobHost", HOST, "--blobPort", "0"],
            os.environ,
            rf"successfully listens on http://{re.escape(HOST)}:(\d+)",
        )

    @property
    def storage_options(self) -> dict[str, object]:
        """What leads to it, with the key."""
        return {
            "account_name": ACCOUNT,
            "account_key": KEY,
            "blob_storage_authority": self.endpoint,
            "blob_storage_scheme": "http",
        }

    @property
    def connection_string(self) -> str:
        """The same, as Azure's tools take it."""
        return (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
            f"BlobEndpoint=http://{self.endpoint}/{ACCOUNT};"
        )

    def downloads(self, before: int = 0, least_bytes: int = 0) -> list[tuple[str, int]]:
        """Return the ranges that were sent: the file's name, and how many bytes.

        Those after the first ``before``. Azurite prints a line after the client has its answer, so
        that so many bytes of ``.log`` files are waited for.
        """
        deadline = time.monotonic() + 20
        while True:
            found = map(_BYTES.search, self.lines)
            sent = [(match[1], int(match[2])) for match in found if match][before:]
            of_log = sum(size for name, size in sent if name.endswith(".log"))
            if of_log >= least_bytes or time.monotonic() > deadline:
                return sent
            time.sleep(0.05)

    def files(self, container: str) -> StoredFiles:
        """Return a container."""
        options = dict(self.storage_options)
        file_system = pa_fs.AzureFileSystem(
            **options,
            dfs_storage_authority=self.endpoint,
            dfs_storage_scheme="http",
        )
        return StoredFiles(file_system, container)
