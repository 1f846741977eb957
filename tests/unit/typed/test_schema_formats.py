from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pylog.errors import InvalidSchemaError
from pylog.typed.known_schemas import KnownSchema
from pylog.typed.schema_formats import reader_of


def test_a_format_is_known_by_the_type_that_registries_have() -> None:
    assert reader_of(KnownSchema(1, "AVRO", '"int"')).type == pa.int32()
    with pytest.raises(InvalidSchemaError, match="schema 1 is of the type THRIFT, expected AVRO"):
        reader_of(KnownSchema(1, "THRIFT", ""))


def test_all_versions_together_are_for_avro() -> None:
    versions = [KnownSchema(number, "JSON", '{"type":"object"}') for number in (1, 2)]
    with pytest.raises(InvalidSchemaError, match="all versions together are for Avro alone"):
        reader_of(replace(versions[0], others=(versions[1],)))
