from __future__ import annotations

import pytest

from pylog.errors import InvalidSchemaError
from pylog.typed.avro_text import canonical_text
from tests.unit.typed.java_avro import JAVA


@pytest.mark.parametrize(("given", "java"), JAVA["texts"])
def test_a_schema_is_written_as_java_writes_it(given: str, java: str) -> None:
    assert canonical_text(given) == java


def test_what_java_writes_stays_as_it_is() -> None:
    for _, java in JAVA["texts"]:
        assert canonical_text(java) == java


def test_a_bare_name_is_a_schema() -> None:
    assert canonical_text("string") == '"string"'


def test_types_of_references_are_named() -> None:
    used = '{"type":"enum","name":"E","namespace":"a","symbols":["X"]}'
    text = '{"type":"record","name":"R","namespace":"a","fields":[{"name":"e","type":"a.E"}]}'

    made = canonical_text(text, [used])

    assert made.endswith('"fields":[{"name":"e","type":"E"}]}')


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(InvalidSchemaError, match="type Foo is not declared"):
        canonical_text('"Foo"')
