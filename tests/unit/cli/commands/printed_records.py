"""Records as `pylog cat` prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Outcome


def records_of(done: Outcome) -> list[dict[str, Any]]:
    assert done.status == 0, done.error
    return [json.loads(line) for line in done.lines]


def partitions_and_offsets(done: Outcome) -> list[tuple[int, int]]:
    return [(record["partition"], record["offset"]) for record in records_of(done)]
