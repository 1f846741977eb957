"""Where URIs of Azure and Google Cloud Storage lead to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pylog.files import cloud_stores
from pylog.files.cloud_stores import azure_file_system, gcs_file_system
from pylog.files.stores import StoreUriError
from tests.unit.files.made_stores import KEY


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what a file system is made with, which is not made."""
    noted: dict[str, Any] = {}

    def make(name: str, parameters: dict[str, Any]) -> str:
        noted.clear()
        noted.update(parameters)
        return name

    monkeypatch.setattr(cloud_stores, "made_by_arrow", make)
    return noted


def test_an_account_is_named_by_the_host(made: dict[str, Any]) -> None:
    assert azure_file_system("abfss://box@me.dfs.core.windows.net", "")[1] == "box"
    assert made == {"account_name": "me"}
    azure_file_system(f"abfs://box:{KEY}%3D@me.blob.core.windows.net", "")
    assert made == {"account_name": "me", "account_key": f"{KEY}="}
    azure_file_system("abfss://box@me.dfs.core.chinacloudapi.cn", "")
    assert made == {
        "account_name": "me",
        "blob_storage_authority": ".blob.core.chinacloudapi.cn",
        "dfs_storage_authority": ".dfs.core.chinacloudapi.cn",
    }


def test_parameters_go_before_the_environment(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "me")
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sas")
    azure_file_system("az://box", "")
    assert made == {"account_name": "me", "account_key": KEY}
    azure_file_system("az://box", "?sas_token=other")
    assert made == {"account_name": "me", "sas_token": "other"}
    # A key is one of an account, and not of another one.
    azure_file_system("az://box", "?account_name=them")
    assert made == {"account_name": "them"}
    azure_file_system("abfss://box@them.dfs.core.windows.net", "")
    assert made == {"account_name": "them"}


def test_a_connection_string_says_it_all(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"DefaultEndpointsProtocol=http;AccountName=dev;AccountKey={KEY}==;"
    monkeypatch.setenv(
        "AZURE_STORAGE_CONNECTION_STRING", f"{text}BlobEndpoint=http://127.0.0.1:10000/dev;"
    )
    azure_file_system("az://box", "")
    assert made == {
        "account_name": "dev",
        "account_key": f"{KEY}==",
        "blob_storage_scheme": "http",
        "blob_storage_authority": "127.0.0.1:10000",
        "dfs_storage_scheme": "http",
        "dfs_storage_authority": "127.0.0.1:10000",
    }
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"{text}EndpointSuffix=core.windows.net")
    azure_file_system("az://box", "")
    assert made["blob_storage_authority"] == ".blob.core.windows.net"
    assert made["dfs_storage_authority"] == ".dfs.core.windows.net"


@pytest.mark.parametrize(
    "uri",
    [
        "az://",
        "az://box:9",
        "abfss://box@me",
        "abfs://me.dfs.core.windows.net@box@x",
        "az://a@b",
        "abfs://me.dfs.core.windows.net",
    ],
)
def test_a_uri_of_another_shape_is_refused(uri: str) -> None:
    with pytest.raises(StoreUriError, match=r"^not az://<container>/… or abfss://<container>@"):
        azure_file_system(uri, "")


def test_a_container_without_an_account_is_refused() -> None:
    with pytest.raises(StoreUriError, match="nothing names the storage account; give az://"):
        azure_file_system("az://box", "")


def test_google_gives_up_after_a_minute_unless_it_is_told_otherwise(made: dict[str, Any]) -> None:
    assert gcs_file_system("gs://bucket", "")[1] == "bucket"
    assert made == {"retry_time_limit": timedelta(seconds=60)}
    gcs_file_system("gs://anonymous@bucket", "?retry_limit_seconds=2.5")
    assert made == {"retry_time_limit": timedelta(seconds=2.5), "anonymous": True}


def test_an_emulator_of_googles_is_in_the_environment(
    made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:4443/")
    gcs_file_system("gs://bucket", "")
    del made["retry_time_limit"]
    assert made == {"endpoint_override": "127.0.0.1:4443", "scheme": "http", "anonymous": True}
    gcs_file_system("gs://bucket", "?endpoint_override=elsewhere")
    del made["retry_time_limit"]
    assert made == {"endpoint_override": "elsewhere"}


def test_a_token_of_googles_has_a_time_when_it_ends(made: dict[str, Any]) -> None:
    gcs_file_system(
        "gs://bucket", "?access_token=t&credential_token_expiration=2026-01-31T12:00:00"
    )
    assert made["credential_token_expiration"].isoformat() == "2026-01-31T12:00:00+00:00"
    gcs_file_system("gs://bucket", "?access_token=t")
    assert made["credential_token_expiration"].tzinfo is not None


@pytest.mark.parametrize("uri", ["gs://", "gs://me@bucket", "gs://bucket:80"])
def test_a_uri_of_google_of_another_shape_is_refused(uri: str) -> None:
    with pytest.raises(StoreUriError, match=r"^not gs://<bucket>/… or gs://anonymous@<bucket>/…"):
        gcs_file_system(uri, "")
