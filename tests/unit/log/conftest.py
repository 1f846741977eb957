"""What tests of logs begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.log.owned_log import OwnedLog

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def owned(tmp_path: Path) -> OwnedLog:
    """Give an empty log on a clock that stands still."""
    return OwnedLog(tmp_path)
