"""Brokers for tests, each on a temporary directory and gone when its test is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_jars import (
    LAST_VERSION_3,
    NEWEST_VERSION,
    VERSION_BEFORE,
    KafkaNotFoundError,
    find_java,
    give_up_without_kafka,
    kafka_class_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


OLDER_VERSIONS = (VERSION_BEFORE, LAST_VERSION_3)
BROKER_VERSIONS = [
    NEWEST_VERSION,
    *(pytest.param(each, marks=pytest.mark.thorough) for each in OLDER_VERSIONS),
]


class NewBroker(Protocol):
    """The fixture `new_broker`."""

    def __call__(
        self,
        version: str = ...,
        properties: Mapping[str, str] | None = ...,
        log_dir: Path | None = ...,
    ) -> KafkaBroker:
        """Return a running broker on a directory of its own; `log_dir` may lie elsewhere."""


@pytest.fixture(scope="session")
def kafka_is_here() -> None:
    """Fetch what all tests run; where it is not to be had, skip them, or fail in CI."""
    try:
        find_java()
        for version in (NEWEST_VERSION, *OLDER_VERSIONS):
            kafka_class_path(version)
    except KafkaNotFoundError as error:
        give_up_without_kafka("no Kafka broker", error)


@pytest.fixture
def new_broker(
    kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NewBroker]:
    """Give a function that starts brokers; whatever still runs after the test is killed."""
    with ExitStack() as stack:

        def start(
            version: str = NEWEST_VERSION,
            properties: Mapping[str, str] | None = None,
            log_dir: Path | None = None,
        ) -> KafkaBroker:
            directory = tmp_path_factory.mktemp(f"kafka-{version}-")
            broker = KafkaBroker(directory, version=version, properties=properties, log_dir=log_dir)
            return stack.enter_context(broker)

        yield start
