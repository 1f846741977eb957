"""A Kafka Streams application that reads from `pylog.serve`: instances share, die and resume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.interop.test_served_groups import CASE, TOPIC, Member, share_and_resume
from tests.support.java_source import java_command
from tests.support.kafka_broker_jars import (
    NEWEST_VERSION,
    KafkaNotFoundError,
    fetch_jars,
    give_up_without_kafka,
)
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

pytestmark = [pytest.mark.broker, pytest.mark.thorough]

SOURCE = Path(__file__).parent / "java" / "StreamsMember.java"
JARS = Path(__file__).parents[2] / "build" / "kafka-streams" / NEWEST_VERSION
PACKAGES = f"org.apache.kafka:kafka-streams:{NEWEST_VERSION}"


@pytest.fixture
def command() -> list[str]:
    try:
        return java_command(SOURCE, SHORT_LIVED, more_jars=fetch_jars(PACKAGES, JARS))
    except KafkaNotFoundError as error:
        give_up_without_kafka("no Kafka Streams", error)


def test_instances_share_are_killed_and_resume_after_a_restart(
    golden_root: GoldenRoot, tmp_path: Path, command: list[str]
) -> None:
    started = 0

    def join(address: str) -> Member:
        nonlocal started
        started += 1
        return Member([*command, address, "streams", TOPIC, str(tmp_path / f"state-{started}")])

    share_and_resume(golden_root.case(CASE), tmp_path / "offsets", join)
