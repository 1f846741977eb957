from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import InvalidLineError
from pylog.model import TopicPartition
from pylog.recovery.offset_translation import OffsetTranslation, read_offset_translation

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("old", "new"), [(0, 100), (10, 100), (11, 101), (12, 105), (14, 105), (15, 106), (99, 106)]
)
def test_a_reader_goes_on_at_the_next_record_that_is_there(old: int, new: int) -> None:
    known = OffsetTranslation()
    for pair in ((10, 100), (11, 101), (14, 105)):
        known.add(ORDERS, *pair)
    assert known.position(ORDERS, old) == new
    assert ORDERS in known
    assert TopicPartition("orders", 1) not in known


@pytest.mark.parametrize("pair", [(14, 200), (200, 105), (13, 104), (-1, 200)])
def test_offsets_that_go_back_are_no_map(pair: tuple[int, int]) -> None:
    known = OffsetTranslation()
    known.add(ORDERS, 14, 105)
    with pytest.raises(ValueError, match="do not follow"):
        known.add(ORDERS, *pair)


def test_a_file_may_have_a_head_and_names_the_line_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    path.write_text('topic,partition,old_offset,new_offset\norders,0,10,0\n\n"a,b",1,4,2\n')
    known = read_offset_translation(path)
    assert known.position(ORDERS, 10) == 0
    assert known.position(TopicPartition("a,b", 1), 3) == 2
    for line in ("orders,0,10", "orders,0,x,1", "orders,0,9,1,1", "orders"):
        path.write_text(f"orders,0,8,0\n{line}\n")
        with pytest.raises(InvalidLineError, match="line 2 is not topic") as raised:
            read_offset_translation(path)
        assert raised.value.path == path
