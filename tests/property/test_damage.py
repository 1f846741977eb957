"""Random logs, random damage: no row that was not written, and every row of a sound batch."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import pylog
from tests.support.batches import Built, batch_v2, joined, message, plain_records, wrapper
from tests.support.damage import positions
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANY = st.booleans()
CODECS = ("none", "none", "gzip", "zstd")
COLUMNS = ["offset", "key", "value", "_corrupt_record"]
Row = tuple[int, bytes | None, bytes | None]


@dataclass(frozen=True)
class Damage:
    """Bytes that become others: one that is flipped, or a block of zeros."""

    at: int
    length: int
    pattern: int

    def apply(self, data: bytearray) -> None:
        end = min(len(data), self.at + self.length)
        for place in range(self.at, end):
            data[place] = data[place] ^ self.pattern if self.pattern else 0


@st.composite
def logs(
    draw: st.DrawFn,
    is_old: st.SearchStrategy[bool] = _ANY,
    has_gaps: st.SearchStrategy[bool] = _ANY,
) -> list[Built]:
    """Make batches of all formats in offset order; those of one log are old or new."""
    is_legacy, is_gappy = draw(is_old), draw(has_gaps)
    batches: list[Built] = []
    offset = draw(st.integers(0, 3)) if is_gappy else 0
    after_image = False
    for left in reversed(range(draw(st.integers(2, 8)))):
        count = 1 if is_legacy and after_image else draw(st.integers(1, 4))
        size = draw(st.sampled_from((0, 10, 63, 200)))
        records = plain_records(offset, count, value_size=size)
        # What looks like a batch and could be the next one. In an old format nothing stands after
        # a value: with the size around it gone, it is the next one in a gap of offsets, before a
        # wrapper, which names its last offset alone, and at the end of the log.
        may_hold_image = not is_legacy or (left > 0 and not is_gappy)
        after_image = may_hold_image and draw(st.integers(0, 4)) == 0
        if after_image:
            image = batch_v2(plain_records(offset + draw(st.integers(0, 9)), 2)).data
            records[0] = records[0]._replace(value=image)
        if not is_legacy:
            built = batch_v2(records, codec=draw(st.sampled_from(CODECS)))
        elif draw(st.booleans()):
            built = wrapper(records, magic=1, codec="gzip")
        else:
            built = message(records[0], magic=draw(st.sampled_from((0, 1))))
        batches.append(built)
        offset = built.last_offset + 1 + (draw(st.integers(0, 5)) if is_gappy else 0)
    return batches


@st.composite
def damages(draw: st.DrawFn, batches: Sequence[Built]) -> list[Damage]:
    """Make up to three damages, none of which touches an offset: see `test_checked_windows`."""
    starts = positions(batches)
    found = []
    for _ in range(draw(st.integers(1, 3))):
        which = draw(st.integers(0, len(batches) - 1))
        at = draw(st.integers(starts[which] + 8, starts[which + 1] - 1))
        room = starts[which + 1] - at
        if draw(st.booleans()):
            found.append(Damage(at, 1, draw(st.sampled_from((1, 0x80, 0xFF)))))
        else:
            found.append(Damage(at, draw(st.integers(1, min(64, room))), 0))
    return found


def rows(batches: Sequence[Built]) -> list[Row]:
    return [(each.offset, each.key, each.value) for built in batches for each in built.records]


@given(data=st.data(), batches=logs(), in_middle=st.booleans())
def test_damage_costs_the_damaged_batches_and_nothing_else(
    data: st.DataObject, batches: list[Built], *, in_middle: bool
) -> None:
    content = bytearray(joined(batches))
    for damage in data.draw(damages(batches)):
        damage.apply(content)
    starts = positions(batches)
    sound = [
        built
        for built, start in zip(batches, starts, strict=False)
        if content[start : start + len(built.data)] == built.data
    ]
    following = [batch_v2(plain_records(batches[-1].last_offset + 1, 2))] if in_middle else []
    with tempfile.TemporaryDirectory() as place:
        end = batches[-1].last_offset + 1
        segments = {0: [Built(bytes(content), (), 2, 0, 0)]} | (
            {end: following} if following else {}
        )
        directory = write_partition(Path(place), segments, with_index=False, with_time_index=False)
        window_bytes = data.draw(st.sampled_from((17, 300, 1 << 22)))
        scan = pylog.scan(
            directory, mode="DROPMALFORMED", columns=COLUMNS, window_bytes=window_bytes
        )
        found = [tuple(row.values())[:3] for row in scan.to_table().to_pylist()]
        assert scan.count() == len(found)
        permissive = pylog.scan(directory, mode="PERMISSIVE", columns=COLUMNS).to_table()
    corrupt_records = permissive["_corrupt_record"].to_pylist()
    assert len(corrupt_records) - corrupt_records.count(None) == len(scan.damage.ranges)
    assert corrupt_records.count(None) == len(found)
    truth = rows([*batches, *following])
    assert found == [row for row in truth if row in found]
    assert set(rows([*sound, *following])) <= set(found)
