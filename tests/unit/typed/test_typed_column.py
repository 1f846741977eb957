from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa

from pylog.typed import avro_decoder
from pylog.typed.known_schemas import KnownSchema, KnownSchemas, SubjectVersion
from pylog.typed.typed_column import TypedColumn

if TYPE_CHECKING:
    import pytest

INT = KnownSchema(1, "AVRO", '"int"')
LONG = KnownSchema(2, "AVRO", '"long"')
OTHER = KnownSchema(3, "AVRO", '"string"')
KNOWN = KnownSchemas(
    by_id={1: INT, 2: LONG, 3: OTHER, 4: KnownSchema(4, "PROTOBUF", "")},
    versions={
        "orders-value": [
            SubjectVersion("orders-value", 1, INT),
            SubjectVersion("orders-value", 2, LONG),
        ],
        "other": [SubjectVersion("other", 1, OTHER)],
    },
)


def column(**changes: object) -> TypedColumn:
    arguments = {"name": "value", "type": pa.int64(), "readers": {"orders": LONG}, "known": KNOWN}
    return TypedColumn(**(arguments | changes))


def of(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + payload


MIXED = [of(1, b"\x02"), None, of(2, b"\x04"), b"x", of(1, b"\x06"), of(2, b""), of(9, b"")]


def test_each_value_is_read_by_its_own_schema_into_one_column() -> None:
    values, failures, _ = column().decode(pa.array(MIXED, pa.binary()), None, "orders")
    assert values.type == pa.int64()
    assert values.to_pylist() == [1, None, 2, None, 3, None, None]
    assert failures == {
        3: (None, "it starts with 78, which is no schema id, and no header has one"),
        5: (2, "the payload ends within the value"),
        6: (None, "no schema has the id 9"),
    }


def test_a_column_of_one_schema_is_not_copied_together() -> None:
    values, failures, _ = column().decode(pa.array([of(2, b"\x02")] * 3), None, "orders")
    assert (values.to_pylist(), failures) == ([1, 1, 1], {})
    nothing, _, _ = column().decode(pa.array([None, None], pa.binary()), None, "orders")
    assert nothing.equals(pa.nulls(2, pa.int64()))


def test_schemas_of_other_subjects_are_failures_unless_a_subject_was_chosen() -> None:
    expected = {"orders": "orders-value"}
    values = pa.array([of(3, b"\x02x")])
    _, failures, _ = column(subjects=expected).decode(values, None, "orders")
    assert failures[0][1].startswith("the schema is of subject other, and the columns are of orde")
    _, failures, _ = column().decode(values, None, "orders")
    assert failures == {0: (3, "the writer's string cannot be read as long")}


def test_other_formats_are_failures() -> None:
    values = pa.array([of(4, b"")])
    _, failures, _ = column(only_type="AVRO").decode(values, None, "orders")
    assert failures == {0: (4, "the schema is of the type PROTOBUF")}


def test_it_can_be_sent_to_another_process() -> None:
    first = column(subjects={"orders": "orders-value"}, only_type="AVRO")
    first.decode(pa.array(MIXED, pa.binary()), None, "orders")
    sent = pickle.loads(pickle.dumps(first))  # noqa: S301 - our own
    assert (sent.name, sent.subjects, sent.only_type) == ("value", first.subjects, "AVRO")
    assert sent.decode(pa.array([of(1, b"\x02")]), None, "orders").values.to_pylist() == [1]


def test_newer_schemas_are_asked_for_once_where_one_is_not_known() -> None:
    asked = []

    def newer() -> KnownSchemas:
        asked.append(1)
        return KNOWN

    typed = column(known=KnownSchemas(by_id={2: LONG})).following(newer)
    for values, expected, times in (
        ([of(2, b"\x02"), None], [1, None], 0),
        ([of(2, b"\x02"), of(1, b"\x04")], [1, 2], 1),
        ([of(9, b"\x02"), of(1, b"\x04")], [None, 2], 1),
    ):
        found = typed.decode(pa.array(values), None, "orders")
        assert (found.values.to_pylist(), len(asked)) == (expected, times)
    typed.copy().decode(pa.array([of(9, b"")]), None, "orders")
    assert len(asked) == 2  # by another task


def test_a_topic_that_is_newer_than_the_read_is_a_failure() -> None:
    _, failures, _ = column().decode(pa.array([of(2, b"\x02")]), None, "payments")
    message = "its topic was not there when the read began: start the read again"
    assert failures == {0: (2, message)}


def test_what_is_too_large_for_one_call_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_decoder, "MOST_BYTES", 1 << 14)
    lists = KnownSchema(5, "AVRO", '{"type":"array","items":"long"}')
    known = KnownSchemas(by_id={5: lists})
    typed = column(type=pa.list_(pa.int64()), readers={"orders": lists}, known=known)
    small, large = b"\xc8\x01" + b"\x02" * 100 + b"\0", b"\xa0\x9c\x01" + b"\x02" * 10_000 + b"\0"
    values = [of(5, each) for each in [small] * 40 + [large] + [small] * 3]
    found, failures, _ = typed.decode(pa.array(values), None, "orders")
    assert failures == {40: (5, "it decodes to more than 512 MiB")}
    assert [each and len(each) for each in found.to_pylist()] == [100] * 40 + [None] + [100] * 3


def test_values_without_prefixes_are_of_the_schema_that_was_given() -> None:
    typed = column(unframed=INT, readers={"orders": INT}, type=pa.int32())
    assert not typed.needs_headers
    found, failures, _ = typed.decode(pa.array([b"\x02", None, b"\0\0"]), None, "orders")
    assert found.to_pylist() == [1, None, None]
    assert failures == {2: (1, "1 bytes follow the value")}
