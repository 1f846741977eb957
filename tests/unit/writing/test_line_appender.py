from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.errors import InvalidLineError
from pylog.writing.partitioner import _BY_NAME
from tests.support.registry_records import ORDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.jobs import LineAppender
    from pylog.logs import LogManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[LogManager]:
    with pylog.logs.own_log_directory(tmp_path / "logs") as opened:
        yield opened


def text_appender(manager: LogManager, **options: Any) -> LineAppender:  # noqa: ANN401
    return pylog.jobs.LineAppender(manager, source="it", line_format="text", topic="t", **options)


def test_lines_are_counted_over_all_calls(manager: LogManager) -> None:
    appender = text_appender(manager)
    appender.append([b"a\t1", b"b\t2"])
    assert appender.line_count == 2
    with pytest.raises(InvalidLineError) as raised:
        appender.append([b"c\t3", b"no tab"])
    assert str(raised.value) == (
        "it, line 4: no tab between key and value; all lines before it have been appended "
        "(3 records)"
    )
    assert appender.line_count == 3


def test_what_was_appended_is_reported_by_partition_in_order(manager: LogManager) -> None:
    appender = pylog.jobs.LineAppender(manager, source="it")
    lines = [
        b'{"topic": "u", "partition": 0, "value": null}',
        b'{"topic": "t", "partition": 2, "value": "YQ=="}',
        b"",
        b'{"topic": "t", "partition": 0, "value": "YQ=="}',
        b'{"topic": "t", "partition": 2, "value": null}',
    ]
    appender.append(lines)
    assert appender.line_count == 5
    assert [
        (*each.topic_partition, each.records, each.end_offset) for each in appender.partitions()
    ] == [("t", 0, 1, 1), ("t", 2, 2, 2), ("u", 0, 1, 1)]


def test_no_line_at_all_makes_no_topic(manager: LogManager) -> None:
    appender = text_appender(manager, partition=3)
    appender.append([])
    assert (appender.line_count, appender.partitions(), manager.logs) == (0, [], {})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"line_format": "csv"}, "line format 'csv' is not one of jsonl, text"),
        ({"compression": "brotli"}, "compression 'brotli' is not one of none, gzip"),
        ({"topic": "a b", "partition": 0}, "'a b' is not a topic name"),
    ],
)
def test_wrong_options_are_refused_before_a_line_is_read(
    options: dict[str, Any], message: str, manager: LogManager
) -> None:
    with pytest.raises(ValueError, match=message):
        pylog.jobs.LineAppender(manager, source="it", **options)


def common(number: int, partition: int = 0) -> bytes:
    return b'{"topic":"t","partition":%d,"value":"%d"}' % (partition, number)


def with_headers(number: int, partition: int = 0) -> bytes:
    fields = {"topic": "t", "partition": partition, "values": "text", "value": str(number)}
    return json.dumps({**fields, "headers": [["h", "x"]]}).encode()


def test_lines_of_all_forms_keep_their_order(tmp_path: Path) -> None:
    # Enough of them for those of the common form to be read many at once.
    forms = [common] * 100 + [with_headers] * 3 + [common] * 90 + [with_headers, common] * 40
    lines = [form(number, number // 50 % 2) for number, form in enumerate(forms)]
    with pylog.logs.own_log_directory(tmp_path / "logs") as manager:
        pylog.jobs.LineAppender(manager, source="it").append([*lines, b"", *lines])
    numbers = [*range(len(lines))] * 2
    for partition in (0, 1):
        scan = pylog.scan(tmp_path / "logs", assign={"t": [partition]}, include_headers=True)
        table = scan.to_table()
        expected = [number for number in numbers if number // 50 % 2 == partition]
        assert table["value"].to_pylist() == [b"%d" % number for number in expected]
        has_headers = [headers is not None for headers in table["headers"].to_pylist()]
        assert has_headers == [forms[number] is with_headers for number in expected]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"topic":"t","partition":0,"value":1}', "value is a number"),
        (b'{"topic":"a/b","partition":0,"value":null}', "'a/b' is not a topic name"),
        (b'{"partition":0,"value":null}', "it names no topic"),
    ],
)
def test_a_line_among_many_is_named_by_its_number(
    manager: LogManager, line: bytes, reason: str
) -> None:
    lines = [common(number) for number in range(200)]
    lines[150:150] = [line, line]
    appender = pylog.jobs.LineAppender(manager, source="it")
    with pytest.raises(InvalidLineError) as raised:
        appender.append(lines)
    assert str(raised.value).startswith(f"it, line 151: {reason}")
    assert str(raised.value).endswith("all lines before it have been appended (150 records)")
    assert appender.line_count == 150


def test_a_partition_that_a_topic_does_not_have_is_named_with_its_line(manager: LogManager) -> None:
    pylog.jobs.LineAppender(manager, source="it").append([common(0)])
    lines = [common(number, number // 70) for number in range(100)]
    with pytest.raises(InvalidLineError, match="it, line 71: topic 't' has no partition 1 here"):
        pylog.jobs.LineAppender(manager, source="it").append(lines)


def placed(directory: Path, topic: str = "t") -> list[tuple[int, bytes | None]]:
    columns = ["partition", "key"]
    table = pylog.scan(directory, topics=topic, columns=columns).to_table()
    return [tuple(row.values()) for row in table.to_pylist()]


def test_keys_that_are_numbers_are_taken_modulo_partitions(tmp_path: Path) -> None:
    with pylog.logs.own_log_directory(tmp_path / "logs") as manager:
        pylog.create_topic(manager, "t", 4)
        appender = text_appender(manager, partitioner="integer_key")
        appender.append([b"6\ta", b"-1\tb", b"4\tc"])
    assert placed(tmp_path / "logs") == [(0, b"4"), (2, b"6"), (3, b"-1")]


def test_many_json_lines_with_such_keys_go_where_their_numbers_say(tmp_path: Path) -> None:
    def line(number: int, **more: object) -> bytes:
        fields = {"topic": "t", "values": "text", "key": str(number), "value": None, **more}
        return json.dumps(fields).encode()

    with pylog.logs.own_log_directory(tmp_path / "logs") as manager:
        pylog.create_topic(manager, "t", 3)
        appender = pylog.jobs.LineAppender(manager, source="it", partitioner="integer_key")
        appender.append([line(number) for number in range(200)] + [line(7, partition=2)])
    expected = sorted((number % 3, b"%d" % number) for number in range(200))
    assert sorted(placed(tmp_path / "logs")) == sorted([*expected, (2, b"7")])


@pytest.mark.parametrize(
    ("key", "reason"),
    [("7a", "key b'7a' is not a decimal number"), (None, "the key is null, an integer is needed")],
)
def test_a_key_that_is_not_a_number_is_named_by_its_line(
    manager: LogManager, key: str | None, reason: str
) -> None:
    lines = [common(number) for number in range(100)]
    lines[70] = json.dumps({"topic": "t", "key": key, "values": "text", "value": "x"}).encode()
    appender = pylog.jobs.LineAppender(manager, source="it", partitioner="integer_key")
    with pytest.raises(InvalidLineError) as raised:
        appender.append(lines)
    assert str(raised.value).startswith(f"it, line 71: {reason}; all lines before it")
    assert appender.partitions()[0].records == 70


def test_lines_are_dealt_out_in_turn_over_all_calls(tmp_path: Path) -> None:
    with pylog.logs.own_log_directory(tmp_path / "logs") as manager:
        pylog.create_topic(manager, "t", 3)
        appender = text_appender(manager, partitioner="round_robin")
        appender.append([b"k\t1", b"k\t2"])
        appender.append([b"k\t3", b"k\t4"])
    values = pylog.scan(tmp_path / "logs", columns=["partition", "value"]).to_table().to_pylist()
    found = [tuple(row.values()) for row in values]
    assert found == [(0, b"1"), (0, b"4"), (1, b"2"), (2, b"3")]


def test_a_partitioner_that_does_not_exist(manager: LogManager) -> None:
    with pytest.raises(ValueError, match="partitioner 'rr' is neither a function nor one of"):
        text_appender(manager, partitioner="rr")


def test_every_partitioner_that_is_offered_exists() -> None:
    assert tuple(_BY_NAME) == pylog.PARTITIONER_NAMES


def test_schemas_are_registered_with_the_first_record(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(ORDER)
    logs = tmp_path / "logs"
    plan = pylog.jobs.plan_registration(logs, "t", {"value": file})
    with pylog.logs.own_log_directory(logs) as manager:
        appender = pylog.jobs.LineAppender(manager, source="it", topic="t", schemas=plan)
        assert manager.topics == set()
        appender.append([b'{"value": {"id": 1}}'])
        with pytest.raises(
            InvalidLineError, match=r"line 2: .* id: 1\.5 is not long; all lines bef"
        ):
            appender.append([b'{"value": {"id": 1.5}}'])
        assert manager.topics == {"t", "_schemas"}

    values = pylog.scan(logs, topics="t", value_format="auto").to_table().column("value")
    assert values.to_pylist() == [{"id": 1}]


def test_schemas_need_json_lines_and_a_topic(tmp_path: Path, manager: LogManager) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(ORDER)
    plan = pylog.jobs.plan_registration(tmp_path / "logs", "t", {"value": file})
    with pytest.raises(ValueError, match="from JSON lines alone"):
        text_appender(manager, schemas=plan)
    with pytest.raises(ValueError, match="encoded for one topic: name it"):
        pylog.jobs.LineAppender(manager, source="it", schemas=plan)
