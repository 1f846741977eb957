"""Objects of a store that are replaced while they are served: as of local files, no fetch lies."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pylog.reading.damage import ReadMode
from tests.unit.server.test_changed_segments import CHANGES, Change, Served, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Counted, HowMany
    from tests.support.s3_server import Bucket


class Mirror:
    """Brings a local directory into a bucket, as it is now: what has gone is deleted there."""

    def __init__(self, bucket: Bucket, directory: Path, prefix: str) -> None:
        self._bucket = bucket
        self._directory = directory
        self._prefix = prefix
        self._there: dict[str, bytes] = {}

    def publish(self) -> None:
        paths = [each for each in self._directory.rglob("*") if each.is_file()]
        now = {str(each.relative_to(self._directory)): each.read_bytes() for each in paths}
        for name in self._there.keys() - now.keys():
            self._bucket.remove(f"{self._prefix}/{name}")
        for name, content in now.items():
            if self._there.get(name) != content:
                self._bucket.write(f"{self._prefix}/{name}", content)
        self._there = now


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("mode", [ReadMode.FAILFAST, ReadMode.DROPMALFORMED])
@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__.strip("_"))
def test_no_fetch_gives_what_the_objects_do_not_hold(
    tmp_path: Path,
    bucket: Bucket,
    how_many: HowMany,
    counted: Counted,
    change: Callable[[Change], None],
    mode: ReadMode,
    *,
    follows: bool,
) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(how_many(1, 20)):
        prefix = f"{change.__name__}-{mode.name}-{follows}-{seed}"
        directory = tmp_path / prefix
        mirror = Mirror(bucket, directory, prefix)
        served = Served(directory, bucket.uri(prefix), mirror.publish)
        chance = random.Random(f"{prefix} on S3")
        outcomes[outcome_of(change, served, chance, mode, follows=follows)] += 1
    counted(f"changed in a store while served, {change.__name__}", outcomes)
