"""One JVM of each Kafka for all tests here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.kafka_log import KafkaLogs
from tests.support.kafka_broker_jars import (
    NEWEST_VERSION,
    VERSION_BEFORE,
    KafkaNotFoundError,
    give_up_without_kafka,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each seed a test of its own: ``LOGS`` or a fourth, or as ``--soak`` says."""
    if "seed" in metafunc.fixturenames:
        option = metafunc.config.option
        seeds = range(option.soak or metafunc.module.LOGS // (1 if option.all else 4))
        metafunc.parametrize("seed", seeds)


@pytest.fixture(
    scope="session",
    params=[NEWEST_VERSION, pytest.param(VERSION_BEFORE, marks=pytest.mark.thorough)],
)
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaLogs]:
    """Give Kafka's classes.

    Where they are not to be had, nothing here has been tried: that is a failure of continuous
    integration, and a skip with its reason elsewhere.
    """
    try:
        logs = KafkaLogs(version=request.param)
    except KafkaNotFoundError as error:
        give_up_without_kafka("nothing was compared with Kafka's own cleaner", error)
    with logs:
        yield logs
