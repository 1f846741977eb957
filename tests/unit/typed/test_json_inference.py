"""A type out of a sample: all of the sample can be read by it, and conflicts are named."""

from __future__ import annotations

import json
import random

import pyarrow as pa

from pylog.typed.json_inference import InferredType, infer_type
from pylog.typed.json_types import is_text
from pylog.typed.json_values import JsonDecoder
from tests.support.json_texts import random_struct, random_value, write_text
from tests.support.payloads import payloads_of


def inferred(*values: object) -> InferredType:
    return infer_type([json.dumps(value).encode() for value in values])


def test_fields_of_all_texts_become_columns() -> None:
    found = inferred(
        {"id": 1, "name": "a", "at": "2026-01-01", "tags": [], "s": {"x": 1}},
        {"id": 2.5, "ok": True, "tags": [{"k": "v"}], "s": {"y": None, "x": None}, "none": None},
    )
    assert found.conflicts == ()
    assert found.texts == 2
    kind = found.field.type
    assert kind == pa.struct(
        [
            ("id", pa.float64()),
            ("name", pa.string()),
            ("at", pa.string()),
            ("tags", pa.list_(pa.struct([("k", pa.string())]))),
            ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("ok", pa.bool_()),
            ("none", pa.string()),
        ]
    )
    assert is_text(kind.field("none"))
    assert is_text(kind.field("s").type.field("y"))


def test_a_conflict_is_said_and_kept_as_text() -> None:
    found = inferred({"a": {"b": [1, "x"]}}, {"a": {"b": [True]}}, {"c": [1]}, {"c": {}})
    assert found.conflicts == (
        "a.b[] is boolean and integer and string: kept as text",
        "c is array and object: kept as text",
    )
    (b,) = found.field.type.field("a").type
    assert is_text(b.type.value_field)
    assert is_text(found.field.type.field("c"))


def test_large_integers_are_not_rounded() -> None:
    assert inferred(2**53, 0.5).field.type == pa.float64()
    assert inferred(2**53 + 1, 0.5).conflicts == ("the value is integer and number: kept as text",)
    found = inferred(2**63, 1)
    assert found.conflicts == ("the value is an integer above 64 bits and integer: kept as text",)
    assert is_text(inferred(int("9" * 400)).field)


def test_objects_of_many_names_are_maps() -> None:
    found = inferred(*({f"user{number}": {"n": number}} for number in range(1000)))
    assert found.field.type == pa.map_(pa.string(), pa.struct([("n", pa.int64())]))


def test_what_is_no_json_is_counted() -> None:
    found = infer_type([b"{}", b"{", b"\xff", b"[" * 100_000, b"9" * 10_000])
    assert (found.texts, found.unreadable) == (5, 3)


def test_a_name_that_is_no_text_is_no_column() -> None:
    found = infer_type([b'{"a": 1, "\\ud800": 2}'])
    assert found.field.type == pa.struct([("a", pa.int64())])


def test_a_sample_is_read_by_its_type() -> None:
    rnd = random.Random(56_07)
    for _ in range(100):
        kinds = [random_struct(rnd) for _ in range(2)]
        texts = [
            write_text(rnd, random_value(rnd, kind), kind).encode()
            for kind in kinds
            for _ in range(5)
        ]
        found = infer_type(texts)
        result = JsonDecoder(found.field).decode(payloads_of(texts))
        result.values.validate(full=True)
        assert found.unreadable == 0
        assert result.failures == {}
