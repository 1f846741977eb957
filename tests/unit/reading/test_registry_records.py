from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import CorruptRecordError
from pylog.reading import registry_records
from pylog.reading.damage import ReadMode
from pylog.reading.registry_records import read_registry, stored_schemas
from tests.support.batches import Stored, batch_v2, with_bad_crc
from tests.support.log_files import write_partition
from tests.support.registry_records import ORDER, ORDER_2, schema, tombstone, write_registry

if TYPE_CHECKING:
    from pathlib import Path


def test_records_are_taken_in_the_order_of_the_log(tmp_path: Path) -> None:
    records = [
        schema("a", 1, 1, ORDER),
        tombstone("a", 1),
        schema("a", 1, 1, ORDER, references=[("n", "b", 1)]),
    ]
    write_registry(tmp_path, records)
    state, damage = read_registry([*pylog.open_directory(tmp_path)], ReadMode.FAILFAST)
    found = [(each.partition, each.offset, each.timestamp, each.state) for each in state.schemas()]
    assert found == [(0, 0, 1_000, "hard-deleted"), (0, 2, 1_002, "active")]
    assert [each.code for each in state.problems] == ["missing_reference"]
    assert damage == []


def test_damage_is_an_error_or_is_returned(tmp_path: Path) -> None:
    batches = [
        with_bad_crc(batch_v2([Stored(0, 1_000, *schema("a", 1, 1, ORDER))])),
        batch_v2([Stored(1, 1_000, *schema("a", 2, 2, ORDER_2))]),
    ]
    write_partition(tmp_path, {0: batches}, name="_schemas-0")
    views = [*pylog.open_directory(tmp_path)]
    with pytest.raises(CorruptRecordError):
        read_registry(views, ReadMode.FAILFAST)
    state, damage = read_registry(views, ReadMode.DROPMALFORMED)
    assert [each.version for each in state.schemas()] == [2]
    assert [(each.next_offset, each.end_offset) for each in damage] == [(0, 1)]


def test_a_registry_is_read_again_once_a_file_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def counted(*given: Any) -> Any:  # noqa: ANN401 - as what it stands for
        reads.append(given)
        return read_registry(*given)

    monkeypatch.setattr("pylog.reading.registry_records.read_registry", counted)
    records = [schema("a", 1, 1, ORDER)]
    write_registry(tmp_path, records)
    for _ in range(3):
        assert len(stored_schemas([*pylog.open_directory(tmp_path)])) == 1
    assert len(reads) == 1

    log = tmp_path / "_schemas-0" / f"{0:020}.log"
    content = log.read_bytes()
    log.write_bytes(content[: len(content) // 2])
    assert stored_schemas([*pylog.open_directory(tmp_path)]) == []
    log.write_bytes(content)
    assert len(stored_schemas([*pylog.open_directory(tmp_path)])) == 1
    assert len(reads) == 3


def test_few_registries_are_kept(tmp_path: Path) -> None:
    for number in range(8):
        write_registry(tmp_path / f"{number}", [schema("a", 1, 1, ORDER)])
        assert len(stored_schemas([*pylog.open_directory(tmp_path / f"{number}")])) == 1

    assert len(registry_records._kept) <= registry_records._MOST_KEPT
