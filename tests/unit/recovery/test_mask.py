"""Parts of records are replaced in logs that we own; all else stays as it was."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.config import LogConfig
from pylog.jobs import mask, read_mask_rules
from tests.property.test_extract import GAPS, PLACE, Ledger, problems, with_types, write_log
from tests.support.killed_program import crashed_at
from tests.support.log_files import tree
from tests.support.reading import scanned

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.columnar.record_masking import RecordMasking
    from tests.conftest import Counted, HowMany
    from tests.support.batches import Stored

SEED = 99


def rules(tmp_path: Path, text: str) -> RecordMasking:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    return read_mask_rules(path)


def emails(tmp_path: Path) -> RecordMasking:
    return rules(tmp_path, '[[mask]]\njson_path = "$.email"\nreplace = "***"')


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    rows = [
        {"key": f"user-{n % 5}", "value": json.dumps({"email": f"mail-{n}@x", "n": n})}
        for n in range(40)
    ]
    pylog.write_topic(
        tmp_path / "logs", "users", rows, key="key", value="value", compression="zstd"
    )
    return tmp_path / "logs"


def test_random_logs_have_other_values_and_nothing_else_changes(
    tmp_path: Path, how_many: HowMany, counted: Counted
) -> None:
    masking = rules(
        tmp_path,
        "[[mask]]\nvalue = true\nreplace = 'gone'\n[[mask]]\nheader = 'h1'\nreplace = 'no'",
    )

    def masked(record: Stored, keys: frozenset[bytes]) -> Stored:
        if record.key not in keys:
            return record
        headers = tuple(
            (name, b"no" if name == "h1" and value is not None else value)
            for name, value in record.headers
        )
        value = None if record.value is None else b"gone"
        return record._replace(value=value, headers=headers)

    seen = {"masked": 0, "kept": 0}
    for seed in range(how_many(6, 120)):
        draw = random.Random(SEED + seed)
        place = tmp_path / str(seed)
        size = draw.choice(("900", "6000", "1073741824"))
        batches = write_log(place, seed, LogConfig.from_properties({"segment.bytes": size}))
        view = pylog.open_directory(place)[PLACE]
        start, end = view.log_start_offset, view.log_end_offset
        known = problems(place)
        keys = frozenset(b"key %d" % draw.randrange(4) for _ in range(2))
        done = mask(place, masking, where=pylog.RecordFilter(keys=keys))
        assert (done.remaining, done.notes) == ([], []), seed
        whole = Ledger(batches, start, end)
        for isolation in ("read_uncommitted", "read_committed"):
            expected = [masked(each, keys) for each in whole.visible(isolation)]
            assert with_types(scanned(place, isolation=isolation)) == with_types(expected), seed
        view = pylog.open_directory(place)[PLACE]
        assert (view.log_start_offset, view.log_end_offset) == (start, end), seed
        assert problems(place) <= known | GAPS, seed
        changed = [
            each for batch in batches for each in batch.visible if masked(each, keys) != each
        ]
        assert sum(each.records for each in done.partitions) == len(changed), seed
        seen["masked"] += len(changed)
        seen["kept"] += len(whole.records)
    counted("maskings", seen)
    assert all(seen.values())


def test_a_part_of_json_goes_from_all_bytes_and_other_records_stay(
    directory: Path, tmp_path: Path
) -> None:
    masking = emails(tmp_path)
    where = pylog.RecordFilter(keys=frozenset({b"user-3"}))
    before = scanned(directory)
    planned = mask(directory, masking, where=where, dry_run=True)
    assert scanned(directory) == before
    done = mask(directory, masking, where=where)
    assert [each[:4] for each in planned.partitions] == [each[:4] for each in done.partitions]
    assert [each.records for each in done.partitions] == [8]
    for old, new in zip(before, scanned(directory), strict=True):
        assert old.value is not None
        if old.key == b"user-3":
            n = json.loads(old.value)["n"]
            assert new == old._replace(value=json.dumps({"email": "***", "n": n}).encode())
        else:
            assert new == old
    again = tree(directory)
    assert mask(directory, masking, where=where).partitions == []
    assert {name for name, data in tree(directory).items() if again.get(name) != data} <= {
        ".kafka_cleanshutdown"
    }


def test_what_could_not_be_masked_and_where_it_still_is_are_named(
    directory: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(directory, other)
    pylog.write_topic(directory, "users", [{"value": "no json"}], value="value")
    done = mask(directory, emails(tmp_path), look_in=[other])
    assert [each.records for each in done.partitions] == [40]
    [left] = done.remaining
    assert (left.path, left.records) == (str(other / "users-0" / f"{0:020d}.log"), 40)
    assert "not JSON" in done.notes[0]


def test_a_call_that_crashes_at_any_step_is_done_by_the_next_one(
    directory: Path, tmp_path: Path, how_many: HowMany
) -> None:
    masking = emails(tmp_path)
    before = scanned(directory)
    place = tmp_path / "copy"
    shutil.copytree(directory, place)
    mask(place, masking)
    expected = scanned(place)
    seen = set()
    for number in itertools.count(0, how_many(3, 1)):
        place = tmp_path / f"copy-{number}"
        shutil.copytree(directory, place)
        has_crashed = crashed_at(number, partial(mask, place, masking))
        found = scanned(place)
        assert found in (before, expected), number
        seen.add(found == before)
        mask(place, masking)
        assert scanned(place) == expected, number
        if not has_crashed:
            break
    assert seen == {True, False}
