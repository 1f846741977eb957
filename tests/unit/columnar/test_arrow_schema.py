from __future__ import annotations

import pyarrow as pa
import pytest

from pylog.columnar.arrow_schema import column_names, record_schema


def test_columns_names_and_types_are_those_of_sparks_kafka_source() -> None:
    assert record_schema() == pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("timestampType", pa.int32()),
        ]
    )


def test_headers_and_batch_come_last_when_asked_for() -> None:
    assert column_names(include_headers=True)[-1] == "headers"
    names = column_names(include_headers=True, include_batch_metadata=True)
    assert names[-2:] == ["headers", "batch"]
    whole = record_schema(include_headers=True, include_batch_metadata=True)
    assert whole.names == names
    assert whole.field("headers").type == pa.list_(
        pa.struct([("key", pa.string()), ("value", pa.binary())])
    )


def test_a_projection_keeps_the_order_asked_for_and_may_name_what_is_off_by_default() -> None:
    assert record_schema(["offset", "headers", "key"]).names == ["offset", "headers", "key"]


def test_milliseconds_can_be_asked_for() -> None:
    schema = record_schema(timestamp_unit="ms")
    assert schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
    with pytest.raises(ValueError, match="timestamp unit 'ns' is neither 'us' nor 'ms'"):
        record_schema(timestamp_unit="ns")


def test_a_column_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"no column 'timestmp'; did you mean 'timestamp'\?"):
        record_schema(["key", "timestmp"])
    with pytest.raises(ValueError, match=r"no column 'xyzzy'\. The columns are: key, value"):
        record_schema(["xyzzy"])


def test_a_column_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="column 'key' is named twice"):
        record_schema(["key", "value", "key"])
