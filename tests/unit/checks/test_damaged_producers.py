"""Which producers damaged batches are of, through doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pylog
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.batches import Built


def of_producer(offset: int, producer_id: int, *, epoch: int = 0) -> Built:
    return batch_v2(
        plain_records(offset, 2),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
    )


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def messages(root: Path, *batches: bytes) -> list[str]:
    directory = write_partition(root, {0: [batch_v2(plain_records(0, 1))]}, name="orders-0")
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    found = pylog.doctor(root).findings
    return [each.message for each in found if each.code == "damaged_batches"]


def test_a_damaged_batch_is_said_to_be_of_its_producer(tmp_path: Path) -> None:
    lost, sound = of_producer(0, 4711, epoch=3).data, of_producer(2, 7).data
    [message] = messages(tmp_path, damaged(lost), sound)
    assert message.endswith("; the header names producer 4711 (epoch 3)")


def test_of_several_damaged_batches_each_producer_is_named_once(tmp_path: Path) -> None:
    first, second, third = (of_producer(2 * place, 1 + place % 2).data for place in range(3))
    [message] = messages(tmp_path, *map(damaged, (first, second, third)), of_producer(6, 9).data)
    assert message.endswith("; the headers name producers 1 (epoch 0), 2 (epoch 0)")


def test_where_no_header_names_a_producer_none_is_said(tmp_path: Path) -> None:
    plain, zeros = batch_v2(plain_records(0, 2)).data, bytes(100)
    [message] = messages(tmp_path / "plain", damaged(plain), of_producer(2, 9).data)
    assert "producer" not in message
    [message] = messages(tmp_path / "zeros", zeros, of_producer(2, 9).data)
    assert "producer" not in message
