"""JDBC drivers of the databases that tests read, fetched once below ``build``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.kafka_broker_jars import KafkaNotFoundError, fetch_jars, give_up_without_kafka

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = ("org.postgresql:postgresql:42.7.14", "org.xerial:sqlite-jdbc:3.54.1.0")
_BUILD = Path(__file__).parents[2] / "build" / "jdbc"


def jdbc_drivers() -> Sequence[Path]:
    """Return the jars; skip the test, or in continuous integration fail it, without them."""
    try:
        return fetch_jars(",".join(PACKAGES), _BUILD)
    except KafkaNotFoundError as error:
        give_up_without_kafka("JDBC drivers", error)
