"""One S3 server a process, its address and credentials as a user's environment would have them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.s3_proxy import Proxy
from tests.support.s3_server import CREDENTIALS, STORE_VARIABLES, Bucket, S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def bucket(s3_server: S3Server) -> Bucket:
    return Bucket(s3_server, "kafka")


@pytest.fixture(scope="session")
def _proxy(s3_server: S3Server) -> Iterator[Proxy]:
    with Proxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def proxy(_proxy: Proxy) -> Iterator[Proxy]:
    """Give the proxy, which passes everything on until a test tells it otherwise."""
    _proxy.begin()
    yield _proxy
    _proxy.begin()


@pytest.fixture(autouse=True)
def store_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Have our credentials in the environment, and nothing of the machine's."""
    for name in STORE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, text in CREDENTIALS.items():
        monkeypatch.setenv(name, text)
    nowhere = tmp_path_factory.getbasetemp() / "no-such-file"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(nowhere))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nowhere))
    # Else a process without credentials asks the machine it runs on for some, and waits.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


MOST_SECONDS = 60


@pytest.fixture
def is_bounded() -> Iterator[None]:
    """Fail a test that took longer than somebody would wait."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < MOST_SECONDS
