"""The `pyarrow.fs.AzureFileSystem` of a container's URI.

A URI names the account (``abfss://<container>@<account>.dfs.core.windows.net/…``, as Hadoop has
it), or leaves it to a parameter or the environment (``az://<container>/…``).
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pylog.files.stores import StoreUriError, made_by_arrow, parse_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow.fs as pa_fs

_STORE = re.compile(r"(?:az|abfss?)://(?:([^@:/]+)(?::([^@]*))?@)?([^@:/]+)")
_SHAPES = "az://<container>/… or abfss://<container>@<account>.dfs.core.windows.net/…"
_CREDENTIALS = ("account_key", "sas_token", "tenant_id", "client_id", "client_secret")
_PARAMETERS: dict[str, Callable[[str], object]] = dict.fromkeys(
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
_VARIABLES = {
    "AZURE_STORAGE_ACCOUNT": "account_name",
    "AZURE_STORAGE_KEY": "account_key",
    "AZURE_STORAGE_SAS_TOKEN": "sas_token",
}
"""The environment variables of the command ``az storage``."""

_PUBLIC_SUFFIX = "core.windows.net"
_HOST = re.compile(r"([^.]+)\.(?:dfs|blob)\.(.+)")
_ENDPOINT = re.compile(r"(https?)://([^/]+)(?:/([^/]+))?/?")


def azure_file_system(store: str, query: str) -> tuple[pa_fs.AzureFileSystem, str]:
    """Return the file system that a container's URI leads to, and the container."""
    parts = _STORE.fullmatch(store)
    container, password, host = parts.groups(default="") if parts else ("", "", ".")
    if not container and "." in host:  # no container has a dot in its name
        msg = f"not {_SHAPES}"
        raise StoreUriError(msg)
    parameters: dict[str, Any] = {}
    if container:
        parameters = _account_of_host(host)
        if password:
            parameters["account_key"] = unquote(password)
    else:
        container = host
    parameters |= parse_parameters(query, _PARAMETERS)
    parameters = _with_environment(parameters)
    if "account_name" not in parameters:
        msg = (
            f"nothing names the storage account; give {_SHAPES}, the parameter account_name, or "
            "AZURE_STORAGE_ACCOUNT in the environment"
        )
        raise StoreUriError(msg)
    for what in ("authority", "scheme"):  # an emulator is one server for both
        if of_blobs := parameters.get(f"blob_storage_{what}"):
            parameters.setdefault(f"dfs_storage_{what}", of_blobs.replace(".blob.", ".dfs.", 1))
    return made_by_arrow("AzureFileSystem", parameters), container


def _account_of_host(host: str) -> dict[str, Any]:
    """Return what ``<account>.dfs.core.windows.net`` says, also of another of Azure's clouds."""
    parts = _HOST.fullmatch(host)
    if parts is None:
        msg = f"not {_SHAPES}"
        raise StoreUriError(msg)
    account, suffix = parts.groups()
    if suffix == _PUBLIC_SUFFIX:
        return {"account_name": account}
    return {"account_name": account, "blob_storage_authority": f".blob.{suffix}"}


def _with_environment(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters, and what the environment says about the same account."""
    found = {
        name: text for variable, name in _VARIABLES.items() if (text := os.environ.get(variable))
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
    if endpoint := _ENDPOINT.fullmatch(fields.get("BlobEndpoint", "")):
        scheme, authority, account = endpoint.groups()
        found["blob_storage_scheme"] = scheme
        if account:  # an emulator has accounts in paths, Azure in host names
            found["blob_storage_authority"] = authority
    return {name: value for name, value in found.items() if value}
