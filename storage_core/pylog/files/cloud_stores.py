"""The file systems of ``pyarrow.fs`` that URIs of S3, Azure and Google Cloud Storage lead to."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.fs as pa_fs

from pylog.files.stores import (
    ArrowStore,
    ListedFile,
    RemoteVersion,
    StoreUriError,
    boolean,
    endpoint_parameters,
    file_id,
    listed_file,
    made_by_arrow,
    parse_parameters,
    store_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pylog.files.stores import RangedFile
    from pylog.files.writable_file import BytesLike


# The `pyarrow.fs.S3FileSystem` of a bucket's URI.
#
# ``FileSystem.from_uri`` would do, but for two things. What it returns asks a server that takes
# requests and never answers 31 times, which is minutes for one read; here there are five attempts.
# And it goes wherever a server redirects it to. ``pyarrow`` has no setting for that; the AWS SDK
# below it follows no redirect for the region ``aws-global``, which is signed for as ``us-east-1``.
# So that name is used where an endpoint of the user's own is asked in that region, which most
# stores other than Amazon's are content with. In another region redirects are followed: the other
# host gets the request without the ``Authorization`` header, hence neither access key nor
# signature, but with the session token of temporary credentials.


ATTEMPTS = 5
CONNECT_SECONDS = 5.0
_REGION_WITHOUT_REDIRECTS = "aws-global"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_SIGNED_ALIKE = "us-east-1"
_S3_URI = re.compile(r"s3://(?:([^@:]*)(?::([^@]*))?@)?([^@:/]+)")
_S3_SHAPES = "s3://<bucket>/… or s3://<access key>:<secret>@<bucket>/… (/ in a secret is %2F)"


_S3_PARAMETERS: dict[str, Callable[[str], object]] = {
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
    access_key, secret_key, bucket = store_parts(_S3_URI, store, _S3_SHAPES)
    user_info = {"access_key": unquote(access_key), "secret_key": unquote(secret_key)}
    options = parse_parameters(query, _S3_PARAMETERS)
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


# The `pyarrow.fs.AzureFileSystem` of a container's URI.
#
# A URI names the account (``abfss://<container>@<account>.dfs.core.windows.net/…``, as Hadoop has
# it), or leaves it to a parameter or the environment (``az://<container>/…``).


_AZURE_URI = re.compile(r"(?:az|abfss?)://(?:([^@:/]+)(?::([^@]*))?@)?([^@:/]+)")
_AZURE_SHAPES = "az://<container>/… or abfss://<container>@<account>.dfs.core.windows.net/…"
_CREDENTIALS = ("account_key", "sas_token", "tenant_id", "client_id", "client_secret")
_AZURE_PARAMETERS: dict[str, Callable[[str], object]] = dict.fromkeys(
    (
        "account_name",
        *_CREDENTIALS,
        "blob_storage_authority",
        "blob_storage_scheme",
        "dfs_storage_authority",
        "dfs_storage_scheme",
    ),
    str,
)
"""What may stand in a query, under the names of `pyarrow.fs.AzureFileSystem`."""

_CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"
_AZURE_VARIABLES = {
    "AZURE_STORAGE_ACCOUNT": "account_name",
    "AZURE_STORAGE_KEY": "account_key",
    "AZURE_STORAGE_SAS_TOKEN": "sas_token",
}
"""The environment variables of the command ``az storage``."""

_PUBLIC_SUFFIX = "core.windows.net"
_AZURE_HOST = re.compile(r"([^.]+)\.(?:dfs|blob)\.(.+)")
_AZURE_ENDPOINT = re.compile(r"(https?)://([^/]+)(?:/([^/]+))?/?")


def azure_file_system(store: str, query: str) -> tuple[pa_fs.AzureFileSystem, str]:
    """Return the file system that a container's URI leads to, and the container."""
    parts = _AZURE_URI.fullmatch(store)
    container, password, host = parts.groups(default="") if parts else ("", "", ".")
    if not container and "." in host:  # no container has a dot in its name
        msg = f"not {_AZURE_SHAPES}"
        raise StoreUriError(msg)
    parameters: dict[str, Any] = {}
    if container:
        parameters = _account_of_host(host)
        if password:
            parameters["account_key"] = unquote(password)
    else:
        container = host
    parameters |= parse_parameters(query, _AZURE_PARAMETERS)
    parameters = _with_environment(parameters)
    if "account_name" not in parameters:
        msg = (
            f"nothing names the storage account; give {_AZURE_SHAPES}, the parameter account_name, "
            "or AZURE_STORAGE_ACCOUNT in the environment"
        )
        raise StoreUriError(msg)
    for what in ("authority", "scheme"):  # an emulator is one server for both
        if of_blobs := parameters.get(f"blob_storage_{what}"):
            parameters.setdefault(f"dfs_storage_{what}", of_blobs.replace(".blob.", ".dfs.", 1))
    return made_by_arrow("AzureFileSystem", parameters), container


def _account_of_host(host: str) -> dict[str, Any]:
    """Return what ``<account>.dfs.core.windows.net`` says, also of another of Azure's clouds."""
    parts = _AZURE_HOST.fullmatch(host)
    if parts is None:
        msg = f"not {_AZURE_SHAPES}"
        raise StoreUriError(msg)
    account, suffix = parts.groups()
    if suffix == _PUBLIC_SUFFIX:
        return {"account_name": account}
    return {"account_name": account, "blob_storage_authority": f".blob.{suffix}"}


def _with_environment(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters, and what the environment says about the same account."""
    found = {
        name: text
        for variable, name in _AZURE_VARIABLES.items()
        if (text := os.environ.get(variable))
    }
    if connection_string := os.environ.get(_CONNECTION_STRING):
        found = _parse_connection_string(connection_string) | found
    if parameters.get("account_name", found.get("account_name")) != found.get("account_name"):
        return parameters
    if parameters.keys() & set(_CREDENTIALS):
        found = {name: text for name, text in found.items() if name not in _CREDENTIALS}
    if "account_key" in found:  # the two exclude each other
        found.pop("sas_token", None)
    return found | parameters


def _parse_connection_string(text: str) -> dict[str, Any]:
    """Return what Azure's connection string (``AccountName=…;AccountKey=…;…``) says."""
    fields = dict(each.split("=", 1) for each in text.split(";") if "=" in each)
    found = {
        "account_name": fields.get("AccountName"),
        "account_key": fields.get("AccountKey"),
        "sas_token": fields.get("SharedAccessSignature"),
        "blob_storage_scheme": fields.get("DefaultEndpointsProtocol"),
    }
    if suffix := fields.get("EndpointSuffix"):
        found["blob_storage_authority"] = f".blob.{suffix}"
    if endpoint := _AZURE_ENDPOINT.fullmatch(fields.get("BlobEndpoint", "")):
        scheme, authority, account = endpoint.groups()
        found["blob_storage_scheme"] = scheme
        if account:  # an emulator has accounts in paths, Azure in host names
            found["blob_storage_authority"] = authority
    return {name: value for name, value in found.items() if value}


# Google Cloud Storage through `pyarrow.fs.GcsFileSystem`, past two things that it does.
#
# A listing that is not recursive leaves out directories, unless somebody has made objects for them;
# so listings are recursive here, a request for 1,000 objects, and directories come from their keys.
# And a file that is opened is requested as a whole at once: a server sends some megabytes that
# nobody reads, until the file is closed. So a file is opened only when a range of it is read, small
# ones are read by that one request, and which file it is comes from a request for that alone.


RETRY_SECONDS = 60.0
"""How long requests are repeated; what the library does by itself is a quarter of an hour."""

_TOKEN_LASTS = timedelta(hours=1)  # as Google issues them
_EMULATOR = "STORAGE_EMULATOR_HOST"
_GOOGLE_URI = re.compile(r"gs://(?:(anonymous)@)?([^@:/]+)")


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_GOOGLE_PARAMETERS: dict[str, Callable[[str], object]] = {
    "anonymous": boolean,
    "access_token": str,
    "credential_token_expiration": _time,
    "target_service_account": str,
    "scheme": str,
    "endpoint_override": str,
    "retry_limit_seconds": float,
    "project_id": str,
}
"""What may stand in a query: `pyarrow.fs.GcsFileSystem` has the names, but for the limit."""


def gcs_file_system(store: str, query: str) -> tuple[pa_fs.GcsFileSystem, str]:
    """Return the file system that ``gs://<bucket>`` leads to, and the bucket.

    Without a parameter that says otherwise, credentials are Google's "application default
    credentials"; the environment variable ``STORAGE_EMULATOR_HOST`` stands for a server that needs
    none, as for Google's own libraries.
    """
    anonymous, bucket = store_parts(
        _GOOGLE_URI, store, "gs://<bucket>/… or gs://anonymous@<bucket>/…"
    )
    given = parse_parameters(query, _GOOGLE_PARAMETERS)
    limit = given.pop("retry_limit_seconds", RETRY_SECONDS)
    parameters: dict[str, Any] = {"retry_time_limit": timedelta(seconds=limit)}
    if "endpoint_override" not in given:
        parameters |= _emulator_of_environment()
    if anonymous:
        parameters["anonymous"] = True
    if "access_token" in given:
        parameters["credential_token_expiration"] = datetime.now(UTC) + _TOKEN_LASTS
        parameters.pop("anonymous", None)
    return made_by_arrow("GcsFileSystem", parameters | given), bucket


def _emulator_of_environment() -> dict[str, Any]:
    """Return where Google's environment variable says that an emulator is."""
    found = endpoint_parameters(os.environ.get(_EMULATOR, ""), "http")
    return {**found, "anonymous": True} if found else {}


class GcsStore(ArrowStore):
    """A `RemoteStore` of a `pyarrow.fs.GcsFileSystem`. Any number of threads."""

    def entries(self, key: str) -> list[ListedFile]:
        """Return the entries of a directory, from the keys of everything below it."""
        found: dict[str, ListedFile] = {}
        infos = self._file_system.get_file_info(pa_fs.FileSelector(key, recursive=True))
        for info in infos:
            name, slash, _ = info.path[len(key) :].lstrip("/").partition("/")
            found[name] = ListedFile(name, 0, is_directory=True) if slash else listed_file(info)
        if not found:
            raise FileNotFoundError(key)
        return [*found.values()]

    def open(self, key: str) -> tuple[RangedFile, RemoteVersion]:
        """Return a file and which one it is; one request."""
        version = self.version_of(key)
        return GcsFile(self._file_system, key, version.size_bytes), version

    def version_of(self, key: str) -> RemoteVersion:
        """Return which file has the name now, by its length and time in microseconds."""
        info = self._file_system.get_file_info(key)
        if info.type != pa_fs.FileType.File:
            raise FileNotFoundError(key)
        tag = f"{info.mtime_ns}-{info.size}"
        return RemoteVersion(info.size, tag, file_id(info.mtime, info.size))


class GcsFile:
    """A file of a bucket, of which a range is read or all. One thread."""

    def __init__(self, file_system: pa_fs.FileSystem, key: str, size_bytes: int) -> None:
        self._file_system = file_system
        self._key = key
        self._size_bytes = size_bytes
        self._file: Any = None

    def read_at(self, length: int, position: int) -> BytesLike:
        """Return the bytes of a range in one request; fewer if the file is shorter."""
        if position == 0 and length == self._size_bytes:
            with self._file_system.open_input_stream(self._key) as stream:
                data: bytes = stream.read()
            return data[:length]
        if self._file is None:
            self._file = self._file_system.open_input_file(self._key)
        more: bytes = self._file.read_at(length, position)
        return more

    def close(self) -> None:
        """Release it; a second call does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
