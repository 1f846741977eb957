"""Batches are rebuilt as rules for masking have them; clients judge in tests/interop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.record.batch_scan import find_batches
from pylog.server.masked_records import MaskedRecords
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.reading import as_buffer

if TYPE_CHECKING:
    from pathlib import Path

RULES = """
[[mask]]
topics = ["orders"]
json_path = ["$.email"]
replace = "***"
[[mask]]
header = ["agent"]
replace = "?"
"""


@pytest.fixture
def masking(tmp_path: Path) -> pylog.results.RecordMasking:
    (tmp_path / "rules.toml").write_text(RULES)
    return pylog.jobs.read_mask_rules(tmp_path / "rules.toml")


def records(first: int, count: int) -> list[Stored]:
    return [
        Stored(
            *(at, 1000 + at, b"k%d" % at, b'{"email": "ann@%d", "n": %d}' % (at, at)),
            (("agent", b"curl"), ("other", b"x")),
        )
        for at in range(first, first + count)
    ]


def test_batches_that_nothing_changes_are_sent_as_they_are_and_what_is_cut_off_is_not_sent(
    masking: pylog.results.RecordMasking,
) -> None:
    masked = MaskedRecords(masking.rules)
    assert masked.covers("users")
    plain = batch_v2([Stored(0, 1, b"k", b"[1]")])
    other = batch_v2(records(1, 3))
    place = pylog.TopicPartition("orders", 0)
    found = masked.masked(place, plain.data + other.data + other.data[:50])
    assert found.startswith(plain.data)
    assert len(find_batches(as_buffer(found)).headers) == 2
    assert b"ann@" not in found
    assert masked.masked(place, other.data[:50]) == b""


def test_rules_and_a_log_that_grows_are_refused(
    tmp_path: Path, masking: pylog.results.RecordMasking
) -> None:
    write_partition(tmp_path / "logs", {0: [batch_v2(records(0, 2))]})
    with pytest.raises(ValueError, match="without follow"):
        pylog.serve(tmp_path / "logs", masking=masking, follow=True)
