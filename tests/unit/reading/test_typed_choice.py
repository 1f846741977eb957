from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
import pylog.duckdb
import pylog.polars
from pylog.errors import (
    InvalidSchemaError,
    NoSchemaError,
    UndecodableValueError,
    UnknownTopicOrPartitionError,
)
from pylog.jobs import ValueFormat
from tests.support.log_files import write_partition
from tests.support.registry_records import ORDER, ORDER_2, schema, write_registry
from tests.unit.reading.typed_logs import FIRST, OF_USER, SECOND, write_orders, write_values
from tests.unit.typed.confluent_values import CONFLUENT

if TYPE_CHECKING:
    from pathlib import Path

ONE = {"id": 1, "note": ""}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_orders(tmp_path / "logs")


def values_of(path: Path, topic: str, given: str | ValueFormat = "auto") -> list[object]:
    scan = pylog.scan(path, topics=topic, value_format=given, columns="value")
    found: list[object] = scan.to_table().column("value").to_pylist()
    return found


def test_a_version_may_be_chosen(logs: Path) -> None:
    chosen = ValueFormat(subject="orders-value", version=1)
    assert values_of(logs, "orders", chosen) == [{"id": 1}, None, {"id": 2}]
    with pytest.raises(InvalidSchemaError, match="subject orders-value has no version 5"):
        values_of(logs, "orders", ValueFormat(version=5))
    with pytest.raises(InvalidSchemaError, match=r"no subject 'x' here; subjects are User, orders"):
        values_of(logs, "orders", ValueFormat(subject="x"))


def test_all_versions_may_be_chosen(logs: Path) -> None:
    chosen = ValueFormat(version="union")
    assert values_of(logs, "orders", chosen) == [
        {"id": 1, "note": None},
        None,
        {"id": 2, "note": "x"},
    ]


def test_without_a_subject_of_its_own_a_topic_has_that_of_its_records(logs: Path) -> None:
    write_values(logs, "people-0", [None, OF_USER])
    assert values_of(logs, "people") == [None, {"name": "ab"}]
    write_values(logs, "other-0", [FIRST, SECOND])
    assert values_of(logs, "other")[0] == ONE


def test_ids_of_several_subjects_are_an_error_that_names_them(logs: Path) -> None:
    write_values(logs, "mixed-0", [FIRST, OF_USER])
    with pytest.raises(InvalidSchemaError, match=r"several subjects: User, orders-value\. Choose"):
        values_of(logs, "mixed")
    chosen = ValueFormat(subject="orders-value")
    with pytest.raises(
        UndecodableValueError, match=r"offset 1: .* by schema 3: id: the writer's sch"
    ):
        values_of(logs, "mixed", chosen)
    write_values(logs, "orders-1", [OF_USER])
    with pytest.raises(
        UndecodableValueError, match="is of subject User, and the columns are of or"
    ):
        values_of(logs, "orders")


def test_a_topic_without_known_ids_is_an_error(logs: Path) -> None:
    write_values(logs, "plain-0", [b"{}"])
    with pytest.raises(
        InvalidSchemaError, match="no subject 'plain-value' here, and the first and last val"
    ):
        values_of(logs, "plain")


def test_topics_with_other_fields_are_read_one_at_a_time(logs: Path) -> None:
    write_values(logs, "people-0", [OF_USER])
    with pytest.raises(InvalidSchemaError, match="the values of orders and of people have schemas"):
        pylog.scan(logs, topics=["orders", "people"], value_format="auto")


def test_the_registry_may_be_elsewhere(logs: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    write_values(alone, "orders-0", [FIRST])
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic '_schemas' here"):
        values_of(alone, "orders")
    assert values_of(alone, "orders", ValueFormat(registry=logs)) == [ONE]
    write_registry(alone, [schema("orders-value", 1, 1, ORDER)], name="registry-0")
    assert values_of(alone, "orders", ValueFormat(registry_topic="registry")) == [{"id": 1}]


def test_of_a_partition_the_registry_is_beside_it(logs: Path) -> None:
    scan = pylog.scan(logs / "orders-0", value_format="auto", columns="value", limit=1)
    assert scan.to_table().column("value").to_pylist() == [ONE]


def test_files_of_schemas(logs: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    write_values(alone, "orders-0", [FIRST, SECOND])
    write_values(alone, "bare-0", [FIRST[5:]])
    old, new = tmp_path / "order.avsc", tmp_path / "order-2.avsc"
    old.write_text(ORDER)
    new.write_text(ORDER_2)
    by_id = ValueFormat(schemas={1: old, 2: new})
    assert values_of(alone, "orders", by_id) == [ONE, {"id": 2, "note": "x"}]
    assert values_of(alone, "bare", ValueFormat(schema=old)) == [{"id": 1}]
    scan = pylog.scan(alone, topics="bare", value_format=ValueFormat(schema=old))
    assert scan.schema.field("value").type == pa.struct([("id", pa.int64())])


def test_what_is_wrong_with_a_file_is_said(logs: Path, tmp_path: Path) -> None:
    def error_of(name: str, content: bytes | None) -> str:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InvalidSchemaError) as caught:
            values_of(logs, "orders", ValueFormat(schema=path))
        return str(caught.value)

    assert "it cannot be read: No such file" in error_of("none.avsc", None)
    assert "its name ends in '.txt', expected .avsc" in error_of("a.txt", b"")
    assert "it is not UTF-8" in error_of("a.avsc", b"\xff")
    assert "the schema that was given: the schema is no JSON" in error_of("b.avsc", b"{")
    assert "larger than 16 MiB" in error_of("c.avsc", b" " * ((1 << 24) + 1))


def write_confluents(path: Path) -> Path:
    """Write what Confluent's serializers made of Protobuf and JSON, and the registry's topic."""
    stored = CONFLUENT["schemas"]
    ((common, common_text),) = stored["orders"]["references"]
    records = [schema(common, 1, 1, common_text, kind="PROTOBUF")]
    for name, each in stored.items():
        references = [(common, common, 1)] if each["references"] else []
        record = schema(
            *(f"{name}-value", 1, each["id"], each["text"]),
            kind=each["type"],
            references=references,
        )
        records.append(record)
    write_registry(path, records)
    protobuf = CONFLUENT["protobuf"]
    topics = {
        "orders": [each["hex"] for each in protobuf["orders"]],
        "details": [protobuf["detail"]],
        "events": [protobuf["event"], protobuf["event"]],
        "json": [each["hex"] for each in CONFLUENT["json"]],
    }
    for name, values in topics.items():
        write_values(path, f"{name}-0", [bytes.fromhex(each) for each in values])
    return path


def test_values_of_confluents_protobuf_and_json_serializers(tmp_path: Path) -> None:
    logs = write_confluents(tmp_path / "confluent")
    for given in ("auto", "protobuf"):
        orders = values_of(logs, "orders", given)
        assert [order["id"] for order in orders] == [2**62 + number for number in range(6)]  # type: ignore[index]
    texts = values_of(logs, "json", "json")
    assert [text["id"] for text in texts] == [2**53 + 1, 1, -5]  # type: ignore[index]
    assert values_of(logs, "json") == texts
    with pytest.raises(UndecodableValueError, match="of the type JSON"):
        values_of(logs, "json", "avro")


def test_columns_are_of_the_message_that_the_records_are(tmp_path: Path) -> None:
    logs = write_confluents(tmp_path / "confluent")
    detail = {"raw": b"\0\xff", "number": 7}
    assert values_of(logs, "details") == [detail]
    assert values_of(logs, "events") == [{"detail": detail}] * 2
    both = CONFLUENT["protobuf"]["detail"], CONFLUENT["protobuf"]["event"]
    write_values(logs, "details-1", [bytes.fromhex(each) for each in both])
    with pytest.raises(InvalidSchemaError, match=r"several messages: shop\.Event, shop\.Event\.D"):
        values_of(logs, "details")
    chosen = ValueFormat(subject="details-value", message="shop.Event.Detail")
    with pytest.raises(UndecodableValueError, match=r"it is a shop\.Event, and the columns are of"):
        values_of(logs, "details", chosen)


def test_files_of_protobuf_and_of_types_in_sparks_words(tmp_path: Path) -> None:
    write_values(tmp_path / "logs", "a-0", [b"\x08\x05"])
    write_values(tmp_path / "logs", "b-0", [b'{"id": 7, "x": "y"}'])
    proto, ddl = tmp_path / "a.proto", tmp_path / "b.ddl"
    proto.write_text("message A {} message B { optional int32 n = 1; }")
    ddl.write_text("id BIGINT, x STRING\n")
    chosen = ValueFormat(schema=proto, message="B")
    assert values_of(tmp_path / "logs", "a", chosen) == [{"n": 5}]
    assert values_of(tmp_path / "logs", "b", ValueFormat(schema=ddl)) == [{"id": 7, "x": "y"}]


def test_json_without_a_schema_is_inferred_and_conflicts_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bare = [b'{"id": 1, "x": {"y": [1.5]}}', None, b'{"x": {"y": []}, "z": "a"}', b'{"z": 7}']
    expected: list[object] = [
        {"id": 1, "x": {"y": [1.5]}, "z": None},
        None,
        {"id": None, "x": {"y": []}, "z": '"a"'},
        {"id": None, "x": None, "z": "7"},
    ]
    write_values(tmp_path / "bare", "t-0", bare)
    assert values_of(tmp_path / "bare", "t", "json") == expected
    (message,) = caplog.messages
    assert message.startswith("of the first 3 values, from which their type is inferred: z is int")
    logs = write_orders(tmp_path / "logs")
    write_values(logs, "t-0", bare)
    assert values_of(logs, "t", "json") == expected
    with pytest.raises(
        InvalidSchemaError, match="the first and last values of t refer to no schema"
    ):
        values_of(logs, "t")
    write_values(logs, "u-0", [b"text", None])
    with pytest.raises(InvalidSchemaError, match="the first values are not JSON"):
        values_of(logs, "u", "json")


@pytest.fixture
def mixed(logs: Path) -> Path:
    """Return a directory of topics with two schemas, with none, with nulls alone, and empty."""
    write_values(logs, "people-0", [OF_USER, None])
    write_values(logs, "notes-0", [b'{"id": 7}', b"text", None, b"\0\xff"])
    write_values(logs, "gone-0", [None, None])
    write_values(logs, "connect-offsets-0", [b'{"file":1}'], key=b'["sink",{}]')
    write_partition(logs, {0: []}, name="empty-0")
    return logs


def test_each_topic_may_have_columns_of_its_own_and_one_without_a_schema_bytes(
    mixed: Path,
) -> None:
    scan = pylog.scan(mixed, value_format=ValueFormat(topics="each"), columns=["topic", "value"])
    found: dict[str, list[object]] = {}
    types = {}
    for batch in scan.to_batches():
        topic = batch.column("topic")[0].as_py()
        found.setdefault(topic, []).extend(batch.column("value").to_pylist())
        types[topic] = batch.schema.field("value")
    registry = [row for batch in pylog.scan(mixed, topics="_schemas").to_batches() for row in batch]
    assert found.pop("_schemas")
    assert registry
    assert found == {
        "orders": [ONE, None, {"id": 2, "note": "x"}],
        "people": [{"name": "ab"}, None],
        "notes": [b'{"id": 7}', b"text", None, b"\0\xff"],
        "gone": [None, None],
        "connect-offsets": [b'{"file":1}'],
    }
    assert {name for name, each in types.items() if each.metadata} == {"orders", "people"}
    assert types["notes"].type == types["gone"].type == pa.binary()
    assert not scan.undecodable.counts
    assert scan.count() == pylog.scan(mixed).count()
    with pytest.raises(ValueError, match="columns of their own"):
        scan.to_table()
    with pytest.raises(ValueError, match="columns of their own"):
        scan.to_reader()
    with pytest.raises(ValueError, match="columns of their own"):
        pylog.polars.scan(mixed, value_format=ValueFormat(topics="each"))
    connection = pylog.duckdb.connect(mixed, value_format=ValueFormat(topics="each"))
    assert connection.sql("SELECT sum(value.id) FROM orders").fetchall() == [(3,)]
    assert connection.sql("SELECT count(value) FROM notes").fetchall() == [(3,)]


def write_late(directory: Path, topic: str, places: range) -> None:
    """Write many values, of which some refer to a schema and the first do not."""
    values = [b"plain text"] * 500_000
    for place in places:
        values[place] = OF_USER
    table = pa.table({"value": pa.array(values, pa.binary())})
    pylog.write_topic(directory, topic, table, partitions=1)


def test_a_topic_whose_last_values_have_a_schema_has_it(logs: Path) -> None:
    write_late(logs, "late", range(450_000, 500_000))
    scan = pylog.scan(logs, topics="late", value_format="auto", columns="value", start=499_999)
    assert scan.to_table().column("value").to_pylist() == [{"name": "ab"}]
    with pytest.raises(UndecodableValueError, match="late-0, offset 0: the value cannot be"):
        pylog.scan(logs, topics="late", value_format="auto").to_table()


def test_one_value_with_a_schema_among_others_is_told(
    logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_late(logs, "rare", range(400_000, 400_003))
    with pytest.raises(NoSchemaError, match="the first and last values of rare refer to no schema"):
        pylog.scan(logs, topics="rare", value_format="auto")
    scan = pylog.scan(logs, value_format=ValueFormat(topics="each"))
    values = [
        value
        for batch in scan.to_batches()
        if batch.column("topic")[0].as_py() == "rare"
        for value in batch.column("value").to_pylist()
    ]
    assert values[400_000] == OF_USER
    (message,) = caplog.messages
    assert message.startswith("rare-0, offset 400000: the value refers to a schema, and the first")
    chosen = ValueFormat(subject="User")
    scan = pylog.scan(logs, topics="rare", value_format=chosen, mode="DROPMALFORMED")
    assert scan.to_table().column("value").to_pylist() == [{"name": "ab"}] * 3


def test_of_a_whole_directory_topics_without_a_schema_are_left_out_with_a_warning(
    mixed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidSchemaError, match="of orders and of people have schemas with other"):
        pylog.scan(mixed, value_format="auto")
    shutil.rmtree(mixed / "people-0")
    scan = pylog.scan(mixed, value_format="auto", columns="value")
    assert scan.to_table().column("value").to_pylist() == [ONE, None, {"id": 2, "note": "x"}]
    assert "no schema: _schemas, connect-offsets, empty, gone, notes." in caplog.text
    with pytest.raises(NoSchemaError, match="no subject 'notes-value' here"):
        pylog.scan(mixed, topics=["orders", "notes"], value_format="auto")
    chosen = ValueFormat(topics="typed")
    scan = pylog.scan(mixed, topics=["orders", "notes"], value_format=chosen, columns="value")
    assert {view.topic for view in scan.partitions} == {"orders"}


def test_a_subject_or_type_is_of_the_topics_that_refer_to_it(mixed: Path) -> None:
    def typed_topics(given: ValueFormat) -> dict[str, list[str]]:
        scan = pylog.scan(mixed, value_format=given, columns=["topic", "value"])
        return {
            batch.column("topic")[0].as_py(): [each.name for each in batch.column("value").type]
            for batch in scan.to_batches()
            if batch.schema.field("value").metadata
        }

    version = ValueFormat(topics="each", subject="orders-value", version=1)
    assert typed_topics(version) == {"orders": ["id"], "people": ["name"]}
    shutil.rmtree(mixed / "people-0")
    scan = pylog.scan(mixed, value_format=ValueFormat(subject="orders-value"))
    assert [view.topic for view in scan.partitions] == ["orders"]
    assert typed_topics(ValueFormat(topics="each", format="protobuf")) == {}
    with pytest.raises(NoSchemaError, match="of all topics here: _schemas, connect-offsets, em"):
        pylog.scan(mixed, value_format="protobuf")


def test_a_condition_is_about_the_topics_that_have_its_fields(mixed: Path) -> None:
    each = ValueFormat(topics="each")

    def places(condition: str, *, invert: bool = False) -> list[tuple[str, int]]:
        found = pylog.search(mixed, value_format=each, where=condition, invert=invert)
        return [
            (row["topic"], row["offset"])
            for batch in found
            for row in batch.select(["topic", "offset"]).to_pylist()
        ]

    assert places("value.id = 2") == [("orders", 2)]
    assert places("value.name = 'ab'") == [("people", 0)]
    assert sorted(places("value IS NULL")) == [("orders", 1), ("people", 1)]
    assert places("value.id = 2", invert=True) == [("orders", 0), ("orders", 1)]
    with pytest.raises(ValueError, match="value has no field 'nothing'"):
        places("value.nothing = 1")
    with pytest.raises(ValueError, match="no topic here has a schema"):
        pylog.search(mixed, topics=["notes", "gone"], value_format=each, where="value.id = 7")
    scan = pylog.scan(mixed, value_format=each, where="value.id > 0", columns=["topic", "offset"])
    assert [batch.to_pylist() for batch in scan.to_batches()] == [
        [{"topic": "orders", "offset": 0}, {"topic": "orders", "offset": 2}]
    ]
    assert scan.count() == 2
