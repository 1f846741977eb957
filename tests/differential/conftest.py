"""One JVM for all tests here, and directories that need not wait for a disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.differential.kafka_log import KafkaLogs
from tests.support.kafka_broker_jars import KafkaNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY = Path("/dev/shm")  # noqa: S108 - a fresh directory is made in it


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaLogs]:
    """Give Kafka's classes.

    Where they are not to be had, nothing here has been tried: that is a failure of continuous
    integration, and a skip with its reason elsewhere.
    """
    try:
        logs = KafkaLogs()
    except KafkaNotFoundError as error:
        reason = f"nothing was compared with Kafka's own cleaner: {error}"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with logs:
        yield logs


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """Give an empty directory, in memory where the system has such a place.

    Both sides wait for the disk all the time, and no power is lost here.
    """
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=_MEMORY, prefix="pylog-") as directory:
        yield Path(directory)
