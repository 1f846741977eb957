"""Types that JSON is read as, and what of them the kernel is told."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from pylog.typed.json_types import as_text, is_text, node_of, powers_of_ten, program_of


def test_fields_of_a_struct_stand_side_by_side_after_their_parent() -> None:
    kind = pa.struct(
        [("a", pa.struct([("x", pa.int64())])), ("b", pa.list_(pa.string())), ("c", pa.int32())]
    )
    program = program_of(node_of(pa.field("", kind)))
    assert [node.name for node in program.nodes] == ["", "a", "b", "c", "x", "item"]
    assert program.domains == 2
    assert program.strings == (5,)
    # Of the root the first is `a`, of that one `x`; after `a` comes `b`, and after `c` `a` again.
    assert program.next_fields.tolist() == [1, -1, 4, 2, -1, 3, -1, 1, -1, 4, -1, -1]


def test_a_name_that_has_escapes_in_every_text_is_in_no_table() -> None:
    kind = pa.struct([('a"b', pa.int64()), ("c", pa.int64())])
    program = program_of(node_of(pa.field("", kind)))
    assert sorted(place for place in program.tables.tolist() if place > 0) == [2]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.duration("s"), "no JSON is read as"),
        (pa.large_string(), "no JSON is read as"),
        (pa.dictionary(pa.int8(), pa.string()), "no JSON is read as"),
        (pa.map_(pa.int64(), pa.string()), "names in JSON are strings"),
        (pa.struct([("a", pa.int64()), ("a", pa.int64())]), "two fields 'a'"),
    ],
)
def test_a_type_that_json_has_no_values_of_is_refused(kind: pa.DataType, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        node_of(pa.field("f", kind))


def test_a_type_that_is_nested_too_deep_is_refused() -> None:
    kind = pa.int64()
    for _ in range(70):
        kind = pa.list_(kind)
    with pytest.raises(ValueError, match="deeper than 64"):
        node_of(pa.field("f", kind))


def test_texts_are_marked_in_the_field_and_not_in_the_type() -> None:
    field = as_text("any")
    assert is_text(field)
    assert not is_text(pa.field("any", pa.string()))
    assert node_of(pa.field("", pa.struct([field]))).type == pa.struct([("any", pa.string())])


def test_powers_of_ten_are_the_highest_bits_of_powers_of_five() -> None:
    words = powers_of_ten().view(np.uint64).tolist()
    for place, power in enumerate(range(-342, 309)):
        upper, lower = words[2 * place : 2 * place + 2]
        assert upper >> 63
        found, exact = Fraction(upper << 64 | lower), Fraction(5) ** power
        while 2 * found > 3 * exact:
            exact *= 2
        while 2 * exact > 3 * found:
            exact /= 2
        assert abs(found / exact - 1) < Fraction(1, 1 << 126)
