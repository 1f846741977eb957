"""Where a store sends those who ask it to another host, and what that host gets to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError, LogStorageError
from pylog.files.remote_storage import _file_system
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.support.s3_proxy import Proxy, Redirect
from tests.support.s3_server import ACCESS_KEY_ID, Bucket, S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "temporarySessionToken0123456789"  # noqa: S105 - opens nothing
STATUSES = (301, 302, 303, 307, 308)


@pytest.fixture(scope="module")
def _elsewhere(s3_server: S3Server) -> Iterator[Proxy]:
    with Proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def elsewhere(_elsewhere: Proxy) -> Proxy:
    """Give a host with the same objects, which nobody named."""
    _elsewhere.begin()
    return _elsewhere


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory, bucket: Bucket) -> str:
    directory = tmp_path_factory.mktemp("redirected")
    write_partition(directory, {0: [batch_v2(plain_records(0, 10))]})
    bucket.upload(directory, directory.name)
    return directory.name


@pytest.fixture(autouse=True)
def _temporary_credentials(
    store_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    # One that was made with another test's environment would have its credentials and region.
    _file_system.cache_clear()
    yield
    _file_system.cache_clear()


def uri_of(proxy: Proxy, prefix: str, region: str) -> str:
    region = f"&region={region}" if region else ""
    return f"s3://kafka/{prefix}?endpoint_override={proxy.endpoint}&scheme=http{region}"


def by_name(proxy: Proxy) -> str:
    """Return the endpoint under another host name than the one that redirects."""
    return proxy.endpoint.replace("127.0.0.1", "localhost")


@pytest.mark.parametrize("region", ["us-east-1", ""])
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("only", ["listing", ".log"])
def test_a_redirect_is_not_followed(
    prefix: str, proxy: Proxy, elsewhere: Proxy, region: str, status: int, only: str
) -> None:
    # What is listed has a path that ends with the bucket.
    suffix = "/kafka" if only == "listing" else ".log"
    answer = Redirect(status, by_name(elsewhere))
    proxy.refuse = lambda _, path, __: answer if path.rstrip("/").endswith(suffix) else None
    with pytest.raises(LogDirectoryError) as caught:
        pylog.scan(uri_of(proxy, prefix, region)).to_table()
    what = "cannot list directory" if only == "listing" else "cannot open file"
    assert str(caught.value).startswith("s3://kafka/")
    assert str(caught.value).endswith(
        f": {what}: the store redirects to another address (HTTP status {status}), which is not "
        "followed; give that address as endpoint_override if you trust it"
    )
    assert TOKEN not in str(caught.value)
    assert not elsewhere.traffic().requests


def test_a_redirect_of_an_endpoint_of_the_environment_is_not_followed(
    prefix: str, proxy: Proxy, elsewhere: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{proxy.endpoint}")
    proxy.refuse = lambda *_: Redirect(307, by_name(elsewhere))
    with pytest.raises(LogDirectoryError, match=r"HTTP status 307\), which is not followed"):
        pylog.open_directory(f"s3://kafka/{prefix}?region=us-east-1")
    assert proxy.traffic().requests
    assert not elsewhere.traffic().requests


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_an_endpoint_of_the_environment_is_asked(
    prefix: str, proxy: Proxy, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")  # the other one comes first
    monkeypatch.setenv(name, f"http://{proxy.endpoint}/")
    assert pylog.scan(f"s3://kafka/{prefix}?region=us-east-1").to_table().num_rows == 10
    assert proxy.traffic().requests


def test_requests_that_follow_no_redirect_are_signed_for_the_region(
    prefix: str, proxy: Proxy
) -> None:
    assert pylog.scan(uri_of(proxy, prefix, "us-east-1")).to_table().num_rows == 10
    for request in proxy.traffic().requests:
        signed = dict(request.headers)["authorization"]
        assert signed.startswith(f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/")
        assert "/us-east-1/s3/aws4_request," in signed


def test_a_region_of_the_environment_stays(
    prefix: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert pylog.scan(uri_of(proxy, prefix, "")).to_table().num_rows == 10
    for request in proxy.traffic().requests:
        assert "/eu-west-1/s3/aws4_request," in dict(request.headers)["authorization"]


@pytest.mark.parametrize("status", STATUSES)
def test_in_another_region_no_key_and_no_signature_is_redirected(
    prefix: str, proxy: Proxy, elsewhere: Proxy, status: int
) -> None:
    proxy.refuse = lambda *_: Redirect(status, by_name(elsewhere))
    # The AWS SDK takes the length of the answer that redirects for that of the file.
    with pytest.raises(LogStorageError):
        pylog.scan(uri_of(proxy, prefix, "eu-west-1")).to_table()
    requests = elsewhere.traffic().requests
    assert requests
    for request in requests:
        names = {name.lower() for name, _ in request.headers}
        assert "authorization" not in names
        assert ACCESS_KEY_ID not in f"{request.path} {request.headers}"
        # A session token is worth nothing without the keys that it belongs to; it does go along.
        assert "x-amz-security-token" in names
