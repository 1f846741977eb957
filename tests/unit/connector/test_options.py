"""What the options of a read mean; no Spark is running."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from pylog import OffsetSpecs, Timestamp, TopicPartition
from pylog.model import IsolationLevel
from pylog.reading.damage import ReadMode
from pyspark_pylog.options import READ_OPTIONS, LoadOptions


def parse(**given: str) -> LoadOptions:
    return LoadOptions.parse({"path": "/logs", **given})


def refusal(given: dict[str, str]) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        LoadOptions.parse(given)
    return str(caught.value)


def test_the_defaults_are_those_of_a_batch_read_of_the_kafka_source() -> None:
    options = parse()
    assert (options.starting, options.ending) == ("earliest", "latest")
    assert options.isolation is IsolationLevel.READ_UNCOMMITTED
    assert options == LoadOptions(
        paths=("/logs",),
        subscribe=None,
        assign=None,
        subscribe_pattern=None,
        fail_on_data_loss=True,
        include_headers=False,
        include_batch_metadata=False,
        columns=None,
        without_effect=(),
    )


def test_topic_partitions_are_split_from_128_mib_on() -> None:
    assert parse().max_partition_bytes == 134_217_728


@pytest.mark.parametrize(
    ("option", "value", "field", "meaning"),
    [
        ("subscribe", "orders", "subscribe", ("orders",)),
        ("subscribe", " orders, ,invoices ,", "subscribe", ("orders", "invoices")),
        ("assign", '{"orders":[0,2],"x":[]}', "assign", {"orders": (0, 2), "x": ()}),
        ("subscribePattern", "^ord.*s$", "subscribe_pattern", "^ord.*s$"),
        ("subscribePattern", " ord ", "subscribe_pattern", "ord"),
        ("failOnDataLoss", "false", "fail_on_data_loss", False),
        ("failOnDataLoss", " TRUE ", "fail_on_data_loss", True),
        ("isolationLevel", "read_committed", "isolation", IsolationLevel.READ_COMMITTED),
        ("isolationLevel", " Read_Committed ", "isolation", IsolationLevel.READ_COMMITTED),
        ("kafka.isolation.level", "READ_COMMITTED", "isolation", IsolationLevel.READ_COMMITTED),
        ("includeHeaders", "True", "include_headers", True),
        ("includeBatchMetadata", "true", "include_batch_metadata", True),
        ("columns", "offset , key", "columns", ("offset", "key")),
        ("mode", " failfast", "mode", ReadMode.FAILFAST),
        ("mode", "DropMalformed", "mode", ReadMode.DROPMALFORMED),
        ("mode", "permissive ", "mode", ReadMode.PERMISSIVE),
        ("maxPartitionBytes", "64m", "max_partition_bytes", 64 << 20),
        ("maxPartitionBytes", " 1 GB ", "max_partition_bytes", 1 << 30),
        ("maxPartitionBytes", "1000", "max_partition_bytes", 1000),
        ("maxPartitionBytes", "7b", "max_partition_bytes", 7),
        ("packPartitions", "AUTO", "pack_partitions", "auto"),
        ("packPartitions", " True ", "pack_partitions", "true"),
        ("packPartitions", "false", "pack_partitions", "false"),
        ("maxDecompressedBytes", "2g", "max_decompressed_bytes", 2 << 30),
        ("maxDecompressedBytes", "1000", "max_decompressed_bytes", 1000),
        ("minPartitions", " 8", "min_partitions", 8),
        ("maxRecordsPerPartition", "1000", "max_records_per_partition", 1000),
        ("includeStray", "True", "include_stray", True),
        ("pushdown", "ON", "pushdown", "on"),
        ("timestampDisorder", "0ms", "timestamp_disorder", 0),
        ("useIndexes", "false", "use_indexes", False),
        ("useIndexes", "true", "use_indexes", True),
        ("leavePageCache", "true", "leave_page_cache", True),
        ("timestampDisorder", "7 milliseconds", "timestamp_disorder", 7),
        ("timestampDisorder", "90 seconds", "timestamp_disorder", 90_000),
        ("timestampDisorder", "5m", "timestamp_disorder", 300_000),
        ("timestampDisorder", "1 minute", "timestamp_disorder", 60_000),
        ("timestampDisorder", "2H", "timestamp_disorder", 7_200_000),
        ("timestampDisorder", "1 day", "timestamp_disorder", 86_400_000),
    ],
)
def test_a_value_is_read_without_regard_to_blanks_around_it(
    option: str, value: str, field: str, meaning: object
) -> None:
    assert getattr(parse(**{option: value}), field) == meaning


def test_names_are_read_without_regard_to_case() -> None:
    spellings = ("includeheaders", "INCLUDEHEADERS", "includeHeaders")
    assert all(parse(**{name: "true"}).include_headers for name in spellings)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"path": "/a"}, ("/a",)),
        ({"path": "/a/../b/"}, ("/b",)),
        ({"path": "/a b/ü"}, ("/a b/ü",)),
        ({"paths": '["/a","/b"]'}, ("/a", "/b")),
        ({"path": "file:///a/b"}, ("/a/b",)),
        ({"path": "file:/a/b"}, ("/a/b",)),
        ({"path": "file://localhost/a"}, ("/a",)),
        ({"path": "FILE:///a%20b"}, ("/a b",)),
        ({"path": "file:///a?b#c"}, ("/a?b#c",)),
        ({"path": "file:a"}, (str(Path.cwd() / "a"),)),
        ({"path": "logs/here"}, (str(Path.cwd() / "logs/here"),)),
        ({"path": "."}, (str(Path.cwd()),)),
        ({"path": "s3a://bucket/logs?region=x"}, ("s3://bucket/logs?region=x",)),
        (
            {"paths": '["s3://b/1","gs://b/2"]', "Storage.Secret_Key": "a/B"},
            ("s3://b/1?secret_key=a%2FB", "gs://b/2?secret_key=a%2FB"),
        ),
    ],
)
def test_a_path_becomes_absolute_or_is_remote(
    given: dict[str, str], paths: tuple[str, ...]
) -> None:
    assert LoadOptions.parse(given).paths == paths


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, 'no path: say load("/path/to/kafka-logs")'),
        ({}, "In SQL: CREATE TABLE … USING pylog OPTIONS (path '/path/to/kafka-logs'), without"),
        ({"path": " "}, "path is empty"),
        ({"paths": '["/a", 1]'}, "to be a JSON list of strings"),
        ({"paths": "[/a]"}, 'expected JSON like ["/a","/b"]'),
        ({"path": "ftp://u:pw@host/logs"}, "path 'ftp://host/logs': what can be read are local"),
        (
            {"path": "dbfs:/mnt/logs"},
            "dbfs: is not read; on Databricks, use the local path /dbfs/<path>",
        ),
        ({"path": "file://server/logs"}, "names another host"),
        (
            {"path": "/a", "storage.region": "x"},
            "path '/a' is local, and storage options (region) are for stores",
        ),
    ],
)
def test_a_path_that_cannot_be_read_is_refused(given: dict[str, str], message: str) -> None:
    assert message in refusal(given)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("subscribe", " , ", "option subscribe is ' , ', expected names separated by commas"),
        ("assign", '{"orders":0}', 'expected JSON like {"topicA":[0,1],"topicB":[2]}'),
        ("assign", '{"orders":["0"]}', "expected JSON like"),
        ("assign", '{"orders":[true]}', "expected JSON like"),
        ("assign", "{}", "expected JSON like"),
        ("assign", "orders", "expected JSON like"),
        ("assign", '{"orders":[0],"orders":[1]}', "'orders' is named twice"),
        ("assign", "[" * 100_000, "expected JSON like"),
        ("subscribePattern", " ", "option subscribePattern is empty"),
        ("subscribePattern", "a(", "option subscribePattern is 'a(', which is not a regular"),
        ("failOnDataLoss", "yes", "option failOnDataLoss is 'yes', expected true or false"),
        ("includeHeaders", "1", "option includeHeaders is '1', expected true or false"),
        ("isolationLevel", "committed", "expected read_uncommitted or read_committed"),
        ("kafka.isolation.level", "x", "option kafka.isolation.level is 'x', expected read_unc"),
        ("columns", "", "option columns is '', expected names separated by commas"),
        ("mode", "STRICT", "option mode is 'STRICT', expected FAILFAST, DROPMALFORMED or PERM"),
        ("maxPartitionBytes", "0", "expected a size like 128m or 1g"),
        ("maxPartitionBytes", "lots", "option maxPartitionBytes is 'lots', expected a size"),
        ("maxPartitionBytes", "1.5g", "expected a size like 128m or 1g"),
        ("maxDecompressedBytes", "all", "option maxDecompressedBytes is 'all', expected a size"),
        ("maxPartitionBytes", "-1", "expected a size like 128m or 1g"),
        ("packPartitions", "yes", "option packPartitions is 'yes', expected auto, true or false"),
        ("minPartitions", "two", "option minPartitions is 'two', expected a number of 1 or more"),
        ("timestampDisorder", "-5s", "option timestampDisorder is '-5s', expected a duration"),
        ("includeBatchMetadata", "on", "option includeBatchMetadata is 'on', expected true or"),
        ("minPartitions", "0", "option minPartitions is '0', expected a number of 1 or more"),
        ("maxRecordsPerPartition", "-1", "expected a number of 1 or more"),
        ("pushdown", "yes", "option pushdown is 'yes', expected auto, on or off"),
        ("timestampDisorder", "5", "expected a duration like 500ms, 90 seconds or 2h"),
        ("includeStray", "1", "option includeStray is '1', expected true or false"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_what_is_expected(
    option: str, value: str, message: str
) -> None:
    assert message in refusal({"path": "/logs", option: value})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "subscrbe",
            "unknown option 'subscrbe'; did you mean 'subscribe'? The options are: path, ",
        ),
        ("startingoffset", "did you mean 'startingOffsets'?"),
        ("isolation.level", "did you mean 'isolationLevel'?"),
        ("includeheader", "did you mean 'includeHeaders'?"),
        ("kafka.isolation.levle", "did you mean 'kafka.isolation.level'?"),
        ("kafka.isolation_level", "did you mean 'kafka.isolation.level'?"),
        ("qqqqqqqqqqqqq", "unknown option 'qqqqqqqqqqqqq'. The options are: path, paths, subs"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_known_one(name: str, message: str) -> None:
    assert message in refusal({"path": "/logs", name: "1"})


def test_options_of_the_kafka_source_without_a_meaning_here_are_accepted_and_listed() -> None:
    given = {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.security.protocol": "SSL",
        "groupIdPrefix": "x",
        "fetchOffset.numRetries": "3",
        "maxTriggerDelay": "10",
    }
    assert parse(**given).without_effect == (
        "fetchOffset.numRetries",
        "groupIdPrefix",
        "kafka.bootstrap.servers",
        "kafka.security.protocol",
        "maxTriggerDelay",
    )


@pytest.mark.parametrize("name", ["topic", "jobId", "topic.retention.ms"])
def test_an_option_of_writes_is_not_one_of_reads(name: str) -> None:
    assert refusal({"path": "/logs", name: "x"}) == (
        f"option {name.lower()!r} is for writes, not for reads; to read a topic, give subscribe"
    )


def test_at_most_one_of_the_three_ways_to_choose_topics_is_allowed() -> None:
    given = {"path": "/logs", "subscribe": "a", "assign": '{"a":[0]}'}
    assert refusal(given) == "give only one of the options subscribe and assign"


@pytest.mark.parametrize(
    "name", ["schemas", "registryTopic", "subject", "subjectVersion", "message"]
)
def test_options_of_schemas_are_refused_where_nothing_is_decoded(name: str) -> None:
    given = {"path": "/logs", name: "1"}
    assert refusal(given) == f"option {name} is for options valueFormat and keyFormat"
    assert LoadOptions.parse({**given, "keyFormat": "auto"}).key_format == "auto"


def test_two_isolation_levels_must_agree() -> None:
    both: dict[str, Any] = {"isolationLevel": "read_committed"}
    same = parse(**both, **{"kafka.isolation.level": "READ_COMMITTED"})
    assert same.isolation is IsolationLevel.READ_COMMITTED
    other = {"path": "/logs", **both, "kafka.isolation.level": "read_uncommitted"}
    assert "contradict each other" in refusal(other)
    swapped = {"isolationLevel": "read_uncommitted", "kafka.isolation.level": "read_committed"}
    assert "contradict each other" in refusal({"path": "/logs", **swapped})


def test_options_pickle() -> None:
    options = parse(assign='{"a":[0]}', startingOffsets='{"a":{"0":3}}')
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - our own


def test_every_option_is_known_to_itself() -> None:
    assert len({name.lower() for name in READ_OPTIONS}) == len(READ_OPTIONS)


def starting(**given: str) -> OffsetSpecs:
    return LoadOptions.parse({"path": "/logs", **given}).starting


def ending(**given: str) -> OffsetSpecs:
    return LoadOptions.parse({"path": "/logs", **given}).ending


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("earliest", "earliest"),
        (" Earliest ", "earliest"),
        ('{"t":{"0":23,"1":-2}}', {("t", 0): 23, ("t", 1): -2}),
        ('{"t":{"0":23},"u":{"7":0}}', {("t", 0): 23, ("u", 7): 0}),
        ('{"t":"earliest","u":{"0":"EARLIEST"}}', {"t": -2, ("u", 0): -2}),
        ('{"t":-2,"u":5}', {"t": -2, "u": 5}),
        ('{"t":{"0":9223372036854775807}}', {("t", 0): 2**63 - 1}),
        ('{"t":{}}', {}),
        ("{}", {}),
    ],
)
def test_starting_offsets_are_a_word_or_json(value: str, meaning: object) -> None:
    assert starting(startingOffsets=value) == meaning


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("latest", "latest"),
        ('{"t":{"0":23,"1":-1}}', {("t", 0): 23, ("t", 1): -1}),
        ('{"t":"latest","u":0}', {"t": -1, "u": 0}),
    ],
)
def test_ending_offsets_are_a_word_or_json(value: str, meaning: object) -> None:
    assert ending(endingOffsets=value) == meaning


def test_without_options_a_read_goes_from_earliest_to_latest() -> None:
    assert (starting(), ending()) == ("earliest", "latest")


@pytest.mark.parametrize("value", ["latest", '{"t":"latest"}', '{"t":{"0":-1}}'])
def test_a_batch_read_cannot_start_at_latest(value: str) -> None:
    with pytest.raises(ValueError, match=r"holds latest \(-1\), and nothing would be read; give "):
        starting(startingOffsets=value)


@pytest.mark.parametrize("value", ["earliest", '{"t":"earliest"}', '{"t":{"0":-2}}'])
def test_a_batch_read_cannot_end_at_earliest(value: str) -> None:
    with pytest.raises(ValueError, match=r"holds earliest \(-2\).*give latest, offsets, or option"):
        ending(endingOffsets=value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("newest", "expected JSON like"),
        ("", "expected JSON like"),
        ("[1]", "expected JSON like"),
        ('{"t":{"0":-3}}', "holds -3, expected an offset"),
        ('{"t":{"0":9223372036854775808}}', "expected an offset"),
        ('{"t":{"0":1.0}}', "holds 1.0, expected an offset"),
        ('{"t":{"0":true}}', "holds True, expected an offset"),
        ('{"t":{"0":"7"}}', "holds '7', expected an offset"),
        ('{"t":{"0":null}}', "holds None, expected an offset"),
        ('{"t":{"0":NaN}}', "expected an offset"),
        ('{"t":["0"]}', "expected an offset"),
        ('{"t":{"x":1}}', "names partition 'x' of topic 't': not a number"),
        ('{"t":{"-1":1}}', "names partition '-1' of topic 't': not a number"),
        ('{"t":{"²":1}}', "not a number"),
        ('{"t":{"0":1,"0":2}}', "'0' is named twice"),
        ('{"t":{"0":1,"00":2}}', "names partition 0 of topic 't' twice"),
        ('{"t":{"0":1},"t":{"1":2}}', "'t' is named twice"),
    ],
)
def test_senseless_offsets_are_refused(value: str, message: str) -> None:
    for parse, name in ((starting, "startingOffsets"), (ending, "endingOffsets")):
        with pytest.raises(ValueError, match=name) as caught:
            parse(**{name: value})
        assert message in str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["-1", "1.5", "now", "", "1_000", "\uff12", "0x10", "+5", "9223372036854775808", "1" * 5000],
)
def test_a_timestamp_is_milliseconds_since_1970(value: str) -> None:
    for parse, name in ((starting, "startingTimestamp"), (ending, "endingTimestamp")):
        at = parse(**{name: " 1700000000000 "})
        assert isinstance(at, Timestamp)
        assert at.milliseconds == 1_700_000_000_000
        with pytest.raises(ValueError, match=f"option {name} holds .*expected milliseconds"):
            parse(**{name: value})


def test_timestamps_may_be_given_by_partition_or_by_topic() -> None:
    value = '{"t":{"0":1000,"1":"2000"},"u":3000}'
    assert starting(startingOffsetsByTimestamp=value) == {
        ("t", 0): Timestamp(1000, "error"),
        ("t", 1): Timestamp(2000, "error"),
        "u": Timestamp(3000, "error"),
    }
    with pytest.raises(ValueError, match="holds True, expected milliseconds"):
        starting(startingOffsetsByTimestamp='{"t":true}')
    with pytest.raises(ValueError, match=r"holds 1\.5, expected milliseconds"):
        ending(endingOffsetsByTimestamp='{"t":1.5}')


@pytest.mark.parametrize(
    ("names", "winner"),
    [
        (("Timestamp", "OffsetsByTimestamp", "Offsets"), "Timestamp"),
        (("Timestamp", "Offsets"), "Timestamp"),
        (("OffsetsByTimestamp", "Offsets"), "OffsetsByTimestamp"),
        (("Offsets",), "Offsets"),
    ],
)
def test_the_kafka_sources_order_of_precedence_holds(names: tuple[str, ...], winner: str) -> None:
    values = {"Timestamp": "1", "OffsetsByTimestamp": '{"t":2}', "Offsets": '{"t":3}'}
    for parse, side in ((starting, "starting"), (ending, "ending")):
        given = {side + name: values[name] for name in names}
        assert parse(**given) == parse(**{side + winner: values[winner]})


@pytest.mark.parametrize(
    ("date", "meaning"),
    [
        ("2026-11-01", "2026-11-01 in UTC is 1793491200000"),
        ("2026-11-01 12:00", "2026-11-01 12:00 in UTC is 1793534400000"),
        ("2026-11-01T12:00:00+01:00", "2026-11-01T12:00:00+01:00 is 1793530800000"),
    ],
)
def test_a_date_is_refused_with_its_milliseconds(date: str, meaning: str) -> None:
    expected = f"holds '{date}', expected milliseconds since 1970 (0 or more); {meaning}"
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        starting(startingTimestamp=date)
    assert str(caught.value) == f"option startingTimestamp {expected}"
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        ending(endingOffsetsByTimestamp=f'{{"t":{{"0":"{date}"}}}}')
    assert str(caught.value) == f"option endingOffsetsByTimestamp {expected}"


@pytest.mark.parametrize("text", ["yesterday", "1950-01-01", "2026-13-01"])
def test_what_is_neither_milliseconds_nor_a_date_after_1970_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected milliseconds since 1970 \(0 or more\)$"):
        starting(startingTimestamp=text)


def test_a_broken_position_is_refused_also_where_another_one_has_precedence() -> None:
    with pytest.raises(ValueError, match="startingOffsets"):
        starting(startingTimestamp="1", startingOffsets="broken")


def test_the_strategy_is_about_the_start_alone() -> None:
    option = "startingOffsetsByTimestampStrategy"
    assert starting(startingTimestamp="1") == Timestamp(1, "error")
    assert starting(startingTimestamp="1", **{option: " LATEST "}) == Timestamp(1, "latest")
    assert ending(endingTimestamp="1") == Timestamp(1, "latest")
    with pytest.raises(ValueError, match=f"option {option} is 'never', expected error or latest"):
        starting(**{option: "never"})


def test_partitions_are_named_by_the_library_s_value() -> None:
    positions = starting(startingOffsets='{"t":{"0":5}}')
    assert isinstance(positions, dict)
    assert [type(key) for key in positions] == [TopicPartition]
