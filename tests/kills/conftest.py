"""How many kills there are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from tests.broker.conftest import kafka_is_here, new_broker
from tests.support.spark_home import make_spark_home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["kafka_is_here", "new_broker"]

CI_KILLS = 273
"""The sum of all shares, of which 82 are drivers, 3 of them while they stream, and 20 executors."""


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Return how many kills a test makes of its share in `CI_KILLS`.

    That many with ``--all``, a fifth without it, and as many as ``--soak`` says.
    """
    is_all = request.config.getoption("--all")
    soak = request.config.getoption("--soak") or (CI_KILLS if is_all else CI_KILLS // 5)
    return lambda share: math.ceil(share * soak / CI_KILLS)


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the ``SPARK_HOME`` of all drivers, executors and their Python processes."""
    return make_spark_home(tmp_path_factory.mktemp("spark-home"))
