from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot


@pytest.fixture
def source(golden_root: GoldenRoot) -> Path:
    """Give a broker's log directory, with internal topics, of which others are made."""
    return golden_root.case("4.3.0/internal-logdir")
