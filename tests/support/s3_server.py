"""A real S3 server program on loopback, and directories in its buckets.

The server is moto's, in a process of its own; what it knows is gone when it ends. It serves ranged
GETs byte by byte as asked, and reads the whole object for each, which is enough for some hundred
megabytes. It takes any credentials unless it is told to check them.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pyarrow.fs as pa_fs

from tests.support.server_program import HOST, ServerProgram
from tests.support.stored_files import StoredFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

ACCESS_KEY_ID = "AKIATESTONLY00000001"
SECRET_ACCESS_KEY = "test/only+secret0000000000000000000000001"  # noqa: S105 - opens nothing
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY}
STORE_VARIABLES = (
    *CREDENTIALS,
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)
# Without Nagle's algorithm, by which a body waits 40 ms after its head.
_PROGRAM = """
from moto.server import main
from werkzeug.serving import WSGIRequestHandler
WSGIRequestHandler.disable_nagle_algorithm = True
main()
"""


class S3Server(ServerProgram):
    """Moto's server on a free port.

    Parameters
    ----------
    checks_credentials
        Whether it refuses every access key it did not issue; it issues none.
    """

    def __init__(self, *, checks_credentials: bool = False) -> None:
        checks = {"INITIAL_NO_AUTH_ACTION_COUNT": "0"} if checks_credentials else {}
        super().__init__(
            "the S3 server",
            [sys.executable, "-c", _PROGRAM, "-H", HOST, "-p", "0"],
            {**os.environ, **CREDENTIALS, **checks},
            rf"Running on http://{re.escape(HOST)}:(\d+)",
        )


class Bucket(StoredFiles):
    """A bucket of a running server."""

    def __init__(self, server: S3Server, name: str) -> None:
        self.name = name
        self.endpoint = server.endpoint
        store = pa_fs.S3FileSystem(
            access_key=ACCESS_KEY_ID,
            secret_key=SECRET_ACCESS_KEY,
            endpoint_override=server.endpoint,
            scheme="http",
            region=REGION,
            allow_bucket_creation=True,
        )
        super().__init__(store, name)

    def uri(self, key: str, *, endpoint: str = "", user_info: str = "") -> str:
        """Return the URI of a directory or file, with what leads to the server."""
        at = f"{user_info}@" if user_info else ""
        query = f"endpoint_override={endpoint or self.endpoint}&scheme=http&region={REGION}"
        return f"s3://{at}{self.name}/{key}?{query}"


def without_store_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which no credentials and no endpoint are named."""
    return {name: text for name, text in environment.items() if name not in STORE_VARIABLES}
