"""The `pyarrow.fs.S3FileSystem` of a bucket's URI.

``FileSystem.from_uri`` would do, but for two things. What it returns asks a server that takes
requests and never answers 31 times, which is minutes for one read; here there are five attempts.
And it goes wherever a server redirects it to. ``pyarrow`` has no setting for that; the AWS SDK
below it follows no redirect for the region ``aws-global``, which is signed for as ``us-east-1``. So
that name is used where an endpoint of the user's own is asked in that region, which most stores
other than Amazon's are content with. In another region redirects are followed: the other host gets
the request without the ``Authorization`` header, hence neither access key nor signature, but with
the session token of temporary credentials.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.fs as pa_fs

from pylog.files.stores import (
    boolean,
    endpoint_parameters,
    made_by_arrow,
    parse_parameters,
    store_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS = 5
CONNECT_SECONDS = 5.0
_REGION_WITHOUT_REDIRECTS = "aws-global"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_SIGNED_ALIKE = "us-east-1"
_STORE = re.compile(r"s3://(?:([^@:]*)(?::([^@]*))?@)?([^@:/]+)")
_SHAPES = "s3://<bucket>/… or s3://<access key>:<secret>@<bucket>/… (/ in a secret is %2F)"


_PARAMETERS: dict[str, Callable[[str], object]] = {
    "access_key": str,
    "secret_key": str,
    "session_token": str,
    "region": str,
    "scheme": str,
    "endpoint_override": str,
    "connect_timeout": float,
    "request_timeout": float,
    "tls_ca_file_path": str,
    "anonymous": boolean,
    "force_virtual_addressing": boolean,
}
"""What may stand in a query, under the names of `pyarrow.fs.S3FileSystem`."""


def s3_file_system(store: str, query: str) -> tuple[pa_fs.S3FileSystem, str]:
    """Return the file system ``s3://<access key>:<secret>@<bucket>`` leads to, and the bucket."""
    access_key, secret_key, bucket = store_parts(_STORE, store, _SHAPES)
    user_info = {"access_key": unquote(access_key), "secret_key": unquote(secret_key)}
    options = parse_parameters(query, _PARAMETERS)
    if "endpoint_override" not in options:
        options = _endpoint_of_environment() | options
    if not options.keys() & {"region", "endpoint_override"}:
        options["region"] = pa_fs.resolve_s3_region(bucket)
    parameters: dict[str, Any] = {
        "retry_strategy": pa_fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        "connect_timeout": CONNECT_SECONDS,
        **{name: text for name, text in user_info.items() if text},
        **options,
    }
    made = made_by_arrow("S3FileSystem", parameters)
    # The region may also come from the environment or a profile.
    if "endpoint_override" in options and made.region == _SIGNED_ALIKE:
        made = made_by_arrow("S3FileSystem", parameters | {"region": _REGION_WITHOUT_REDIRECTS})
    return made, bucket


def _endpoint_of_environment() -> dict[str, Any]:
    """Return where AWS's environment variables say that S3 is; ``pyarrow`` passes them over."""
    url = next(filter(None, map(os.environ.get, _ENDPOINTS)), "")
    return endpoint_parameters(url, "https")
