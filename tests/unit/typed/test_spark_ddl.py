"""Types in Spark's words become types of Arrow; what Spark takes them for is in tests/spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pylog.typed.json_types import as_text, is_text
from pylog.typed.spark_ddl import ddl_of, field_of_ddl


def test_a_variant_is_kept_as_text() -> None:
    field = field_of_ddl("a VARIANT, b ARRAY<VARIANT>")
    assert is_text(field.type.field("a"))
    assert is_text(field.type.field("b").type.value_field)
    assert is_text(field_of_ddl("variant"))


def test_a_type_in_sparks_words_is_that_type() -> None:
    kind = pa.struct(
        [
            ("", pa.int64()),
            ("a`b c", pa.list_(pa.field("element", pa.decimal128(38, 3)))),
            ("m", pa.map_(pa.string(), pa.struct([("x", pa.timestamp("us")), as_text("y")]))),
            ("t", pa.timestamp("us", "UTC")),
        ]
    )
    text = ddl_of(pa.field("", kind))
    assert text.startswith("STRUCT<`` BIGINT, `a``b c` ARRAY<DECIMAL(38, 3)>, `m` MAP<STRING, STRU")
    found = field_of_ddl(text)
    assert found.type.equals(kind, check_metadata=False)
    assert is_text(found.type.field("m").type.item_type.field("y"))
    assert ddl_of(as_text("")) == "VARIANT"
    with pytest.raises(ValueError, match="Spark has no type uint64"):
        ddl_of(pa.field("", pa.uint64()))


def test_fields_of_all_types_are_read() -> None:
    assert field_of_ddl("id BIGINT, name STRING").type == pa.struct(
        [("id", pa.int64()), ("name", pa.string())]
    )
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    assert field_of_ddl("m map<string, struct<x int not null>>").type == pa.struct(
        [("m", pa.map_(pa.string(), inner))]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a type, found the end"),
        ("a", "expected a type, found 'a'"),
        ("a INT,", "expected a name, found the end"),
        ("a INT b INT", "expected a comma, found 'b INT' at character 6"),
        ("a INTERVAL", "expected a type, found 'INTERVAL' at character 2"),
        ("a ARRAY<INT", "expected >, found the end"),
        ("a DECIMAL(39)", "a precision up to 38"),
        ("a DECIMAL(3, 4)", "a scale up to that"),
        ("a DECIMAL(x)", "expected a number"),
        ("a INT NOT", "expected NULL"),
        ("a INT COMMENT b", "a comment in quotes"),
        ("a ?", "expected a name or a type, found '?'"),
        (f"a {'ARRAY<' * 100}INT{'>' * 100}", "at most 64 types"),
    ],
)
def test_what_is_no_type_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        field_of_ddl(text)
    assert message in str(caught.value)
