"""Random histories of clusters that were lost in part: what serves them, and what they keep."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from tests.broker.recovery_histories import Ending, History, Run
from tests.support.kafka_broker_jars import LAST_VERSION_3, NEWEST_VERSION, VERSION_BEFORE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Counted

_LEFT_SOCKETS = (
    r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"
)
pytestmark = [
    pytest.mark.broker,
    pytest.mark.filterwarnings(_LEFT_SOCKETS),
    pytest.mark.usefixtures("kafka_is_here"),
]

VERSIONS = (NEWEST_VERSION, VERSION_BEFORE, LAST_VERSION_3)
SEED = 54
RUNS = [
    Run(
        SEED + number,
        list(Ending)[number % 6],
        VERSIONS[number // 6 % 3],
        is_dynamic=bool(number % 5 % 2 ^ number // 18 % 2),
        is_apart=number % 7 in (3, 5),
    )
    for number in range(36)
]


@pytest.fixture(autouse=True)
def sockets_are_collected() -> Iterator[None]:
    yield
    gc.collect()


@pytest.mark.thorough(of_all=18)
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_what_a_history_leaves_on_disks_is_served(
    tmp_path: Path, run: Run, counted: Counted
) -> None:
    history = History(run, tmp_path)
    history.live()
    history.go_on()
    counted("histories", {"topics": len(history.topics)})
    counted("partitions and groups", history.outcomes)
