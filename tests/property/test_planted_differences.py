"""Pairs of logs with one planted change each: `diff` finds it, names it, and nothing else."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

from pylog.jobs import diff
from tests.support.batches import Built, Stored, batch_v2
from tests.support.log_files import segment_path
from tests.unit.recovery.test_merge import replica

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import HowMany

SEED = 56
_HEADER = 61


def _log(choice: random.Random) -> list[Built]:
    batches, offset = [], 0
    for at in range(choice.randrange(4, 30)):
        count = choice.randrange(1, 6)
        records = [
            Stored(
                offset + one, 1000 + offset + one, b"k%d" % one, choice.randbytes(9), (("h", b"1"),)
            )
            for one in range(count)
        ]
        batches.append(batch_v2(records, leader_epoch=at // 10))
        offset += count
    return batches


def _made(batch: Built, records: list[Stored], **options: object) -> Built:
    epoch = int.from_bytes(batch.data[12:16], "big")
    return batch_v2(records, **{"leader_epoch": epoch, **options})  # type: ignore[arg-type]


def _other(field: str) -> Callable[[Built, random.Random], Built]:
    def change(batch: Built, choice: random.Random) -> Built:
        records = list(batch.records)
        at = choice.randrange(len(records))
        new: dict[str, object] = {
            "value": b"another",
            "key": None,
            "timestamp": records[at].timestamp + 7,
            "headers": (("h", b"2"),),
        }
        records[at] = records[at]._replace(**{field: new[field]})  # type: ignore[arg-type]
        return _made(batch, records)

    return change


def _flipped(batch: Built, choice: random.Random) -> Built:
    data = bytearray(batch.data)
    data[choice.randrange(_HEADER, len(data))] ^= 1 << choice.randrange(8)
    return Built(**{**batch.__dict__, "data": bytes(data)})


def _compressed(batch: Built, choice: random.Random) -> Built:
    return _made(batch, list(batch.records), codec="zstd")


def _of_producer(batch: Built, choice: random.Random) -> Built:
    return _made(batch, list(batch.records), producer_id=choice.randrange(9), producer_epoch=0)


def _of_transaction(batch: Built, _choice: random.Random) -> Built:
    return _made(batch, list(batch.records), producer_id=1, producer_epoch=0, is_transactional=True)


def _without_first(batch: Built, _choice: random.Random) -> Built | None:
    """Leave a record out; the batch spans the same offsets."""
    if len(batch.records) == 1:
        return None
    first, last = batch.records[0].offset, batch.records[-1].offset
    return _made(batch, list(batch.records[1:]), base_offset=first, last_offset=last)


def _of_other_epoch(batch: Built, choice: random.Random) -> Built:
    data = bytearray(batch.data)
    data[13] ^= 1 << choice.randrange(8)
    return Built(**{**batch.__dict__, "data": bytes(data)})


CHANGES: dict[str, tuple[Callable[[Built, random.Random], Built | None], str]] = {
    "value": (_other("value"), "record"),
    "key": (_other("key"), "record"),
    "timestamp": (_other("timestamp"), "record"),
    "headers": (_other("headers"), "record"),
    "byte": (_flipped, "damaged-right"),
    "codec": (_compressed, "batch"),
    "producer": (_of_producer, "batch"),
    "transaction": (_of_transaction, "batch"),
    "record": (_without_first, "only-left"),
    "epoch": (_of_other_epoch, "epoch"),
    "missing": (lambda _batch, _choice: None, "only-left"),
}


def test_each_planted_change_is_found_and_named(tmp_path: Path, how_many: HowMany) -> None:
    for number in range(how_many(45, 300)):
        choice = random.Random(SEED * 1_000_003 + number)
        name = list(CHANGES)[number % len(CHANGES)]
        change, kind = CHANGES[name]
        batches = _log(choice)
        at = choice.randrange(len(batches))
        new = change(batches[at], choice)
        cut = choice.randrange(1, len(batches))
        place = tmp_path / str(number)
        what = f"seed {SEED}, case {number}: {name} in batch {at} of {len(batches)}"
        changed = [*batches[:at], *([] if new is None else [new]), *batches[at + 1 :]]
        one = replica(place / "1", _segments(batches, batches[cut].base_offset), _epochs(batches))
        other = replica(place / "2", _segments(changed, batches[cut].base_offset), _epochs(batches))
        assert diff(one, one).is_alike, what
        (found,) = diff(one, other).partitions
        assert list(found.counts) == [kind], (what, found)
        span = batches[at].base_offset, batches[at].last_offset + 1
        for each in found.differences:
            assert span[0] <= each.start_offset < each.end_offset <= span[1], (what, found)
        assert found.first_offset == found.differences[0].start_offset, what
        if kind != "damaged-right":
            (quick,) = diff(one, other, only_headers=True).partitions
            assert quick.counts == found.counts, what
        (turned,) = diff(other, one).partitions
        sides = {"only-left": "only-right", "damaged-right": "damaged-left"}
        assert list(turned.counts) == [sides.get(kind, kind)], what
        shutil.rmtree(place)


def _segments(batches: list[Built], cut: int) -> dict[int, list[Built]]:
    return {
        0: [each for each in batches if each.base_offset < cut],
        cut: [each for each in batches if each.base_offset >= cut],
    }


def _epochs(batches: list[Built]) -> list[tuple[int, int]]:
    found: dict[int, int] = {}
    for each in batches:
        epoch = int.from_bytes(each.data[12:16], "big")
        found.setdefault(epoch, each.base_offset)
    return sorted(found.items())


def test_a_lost_segment_is_a_range(tmp_path: Path) -> None:
    choice = random.Random(3)
    batches = _log(choice)
    cut = batches[2].base_offset
    one = replica(tmp_path / "1", _segments(batches, cut))
    other = replica(tmp_path / "2", _segments(batches, cut))
    segment_path(other, 0).unlink()
    (found,) = diff(one, other).partitions
    assert [(each.kind, each.start_offset, each.end_offset) for each in found.differences] == [
        ("only-left", 0, cut)
    ]
    assert found.counts == {"only-left": cut}


def test_copies_at_other_offsets_are_matched_by_content(tmp_path: Path, how_many: HowMany) -> None:
    for number in range(how_many(15, 300)):
        choice = random.Random(SEED * 3_000_017 + number)
        place = tmp_path / str(number)
        values = [choice.choice([b"a", b"b", choice.randbytes(6)]) for _ in range(60)]
        records = [Stored(at * 2, 1000 + at, None, value) for at, value in enumerate(values)]
        kept = list(range(60))
        at = choice.randrange(60)
        kind = choice.choice(["none", "missing", "twice", "other"])
        if kind == "missing":
            kept.remove(at)
        elif kind == "twice":
            kept.insert(at, at)
        copied = [records[which]._replace(offset=5 + offset) for offset, which in enumerate(kept)]
        if kind == "other":
            copied[at] = copied[at]._replace(value=b"something else")
        one = replica(place / "1", {0: [batch_v2([each]) for each in records]})
        other = replica(
            place / "2", {5: [batch_v2(copied)]}, name="copy-0", topic_id="BBECAwQFBgcICQoLDA0ODw"
        )
        (found,) = diff(one, other, offset_map=place / "map.csv").partitions
        what = f"seed {SEED}, case {number}: {kind} at {at}", found
        assert found.mode == "copies", what
        expected = {"none": {}, "missing": {"only-left": 1}, "twice": {"only-right": 1}}
        assert found.counts == expected.get(kind, {"record": 1}), what
        lines = (place / "map.csv").read_text().splitlines()
        assert lines[0] == "topic,partition,old_offset,new_offset"
        rows = [line.split(",") for line in lines[1:]]
        by_offset = {each.offset: each.value for each in copied}
        assert all(values[int(row[2]) // 2] == by_offset[int(row[3])] for row in rows), what
        assert len(rows) == 60 - (kind in ("missing", "other")), what
        assert all(row[:2] == ["orders", "0"] for row in rows)
