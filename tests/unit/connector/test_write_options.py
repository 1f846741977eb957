"""What the options of a write mean; no Spark is running."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import pylog
from pyspark_pylog.options import WRITE_OPTIONS, WriteOptions


def parse(**given: str) -> WriteOptions:
    return WriteOptions.parse({"path": "/logs", **given})


def refusal(given: dict[str, str], *, is_stream: bool = False) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        WriteOptions.parse(given, is_stream=is_stream)
    return str(caught.value)


def test_the_defaults() -> None:
    assert parse() == WriteOptions(
        directory="/logs",
        topic=None,
        compression="none",
        level=None,
        batch_size_bytes=262_144,
        partitions=None,
        creates_similar_topic=False,
        writes_internal_topics=False,
        partitioner="default",
        job_id=None,
        commit_timeout_ms=60_000,
        topic_properties={},
        without_effect=(),
    )


@pytest.mark.parametrize(
    ("option", "value", "field", "meaning"),
    [
        ("topic", " orders ", "topic", "orders"),
        ("COMPRESSION", " ZSTD", "compression", "zstd"),
        ("level", "-3", "level", -3),
        ("batchSizeBytes", "1m", "batch_size_bytes", 1 << 20),
        ("numPartitions", "12", "partitions", 12),
        ("createTopic", " True", "creates_similar_topic", True),
        ("writeInternalTopics", "TRUE", "writes_internal_topics", True),
        ("partitioner", "Round_Robin", "partitioner", "round_robin"),
        ("jobId", "nightly 2026-11-22", "job_id", "nightly 2026-11-22"),
        ("commitTimeout", "10 minutes", "commit_timeout_ms", 600_000),
        ("commitTimeout", "0s", "commit_timeout_ms", 0),
        ("topic.retention.ms", " -1", "topic_properties", {"retention.ms": "-1"}),
        ("Topic.Cleanup.Policy", "compact", "topic_properties", {"cleanup.policy": "compact"}),
    ],
)
def test_a_value_is_read_without_regard_to_case_and_blanks_around_it(
    option: str, value: str, field: str, meaning: object
) -> None:
    assert getattr(parse(**{option: value}), field) == meaning


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"topics": "a"}, "unknown option 'topics'; did you mean 'topic'? The options are: path, "),
        ({"jobid ": "a"}, "unknown option 'jobid '; did you mean 'jobId'?"),
        ({"x": "a"}, "unknown option 'x'. The options are: path, topic, compression, level, "),
        ({"subscribe": "a"}, "option 'subscribe' is for reads, not for writes. The options are: "),
        ({"storage.region": "a"}, "option 'storage.region' is for reads, not for writes. The "),
        ({"checkpointLocation": "/c"}, "unknown option 'checkpointlocation'"),
        ({"topic": " "}, "option topic is empty"),
        ({"jobId": ""}, "option jobId is empty"),
        ({"level": "high"}, "option level is 'high', expected a number"),
        ({"numPartitions": "0"}, "option numPartitions is '0', expected a number of 1 or more"),
        ({"createTopic": "yes"}, "option createTopic is 'yes', expected true or false"),
        ({"commitTimeout": "60"}, "option commitTimeout is '60', expected a duration like 500ms"),
        ({"compression": "brotli"}, "option compression is 'brotli', expected none, gzip, snappy"),
        ({"partitioner": "x"}, "option partitioner is 'x', expected default, round_robin or int"),
        ({"batchSizeBytes": "0"}, "option batchSizeBytes is '0', expected a size like"),
        ({"path": "s3://bucket/logs"}, "path 's3://bucket/logs' is in an object store; a topic is"),
        (
            {"kafka.value.serializer": "x"},
            "option 'kafka.value.serializer' is not supported: values are written as the bytes",
        ),
        (
            {"kafka.key.serializer": "x"},
            "option 'kafka.key.serializer' is not supported: keys are written as the bytes",
        ),
        (
            {"kafka.partitioner.class": "x"},
            "option 'kafka.partitioner.class' is not supported: classes of the JVM do not run here",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, str], reason: str) -> None:
    assert refusal({"path": "/logs", **given}).startswith(reason)


def test_a_property_that_topics_do_not_have_is_refused() -> None:
    assert "retention.sm" in refusal({"path": "/logs", "topic.retention.sm": "1"})
    assert "segment.bytes" in refusal({"path": "/logs", "topic.segment.bytes": "1"})


def test_a_write_without_a_path_says_how_to_give_one() -> None:
    assert refusal({}).startswith('no path: say save("/path/to/kafka-logs"). Spark keeps')
    assert refusal({}, is_stream=True).startswith('no path: say start("/path/to/kafka-logs"). ')


def test_a_path_becomes_absolute() -> None:
    assert WriteOptions.parse({"path": "logs"}).directory == str(Path.cwd() / "logs")
    assert WriteOptions.parse({"path": "file:///a%20b"}).directory == "/a b"


def test_options_of_the_kafka_sink_without_a_meaning_here_have_no_effect() -> None:
    given = {
        "kafka.bootstrap.servers": "h:9092",
        "kafka.acks": "all",
        "kafka.compression.type": "lz4",
        "includeHeaders": "true",
    }
    options = parse(topic="t", **given)
    assert options.without_effect == (
        "includeHeaders",
        "kafka.acks",
        "kafka.bootstrap.servers",
        "kafka.compression.type",
    )
    assert options == WriteOptions(
        directory="/logs", topic="t", without_effect=options.without_effect
    )


def test_a_stream_has_options_of_sparks_own_and_no_job_id() -> None:
    given = {"path": "/logs", "checkpointLocation": "/c", "queryName": "q"}
    assert WriteOptions.parse(given, is_stream=True).without_effect == ()
    message = refusal({**given, "jobId": "x"}, is_stream=True)
    assert message.startswith(
        "option jobId is for batch writes; leave it out: a micro-batch is known by"
    )


def test_options_pickle() -> None:
    options = parse(topic="t", **{"topic.retention.ms": "1"})
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - our own


def test_a_job_is_made_of_the_options() -> None:
    options = parse(
        topic="t",
        numPartitions="3",
        createTopic="true",
        writeInternalTopics="true",
        compression="gzip",
        level="9",
        **{"topic.retention.ms": "1"},
    )
    assert options.job("q", 4) == pylog.jobs.WriteJob(
        "/logs",
        "q",
        4,
        topic="t",
        partitions=3,
        compression="gzip",
        level=9,
        batch_size_bytes=262_144,
        config={"retention.ms": "1"},
        creates_similar_topic=True,
        writes_internal_topics=True,
    )


def test_every_option_is_known_to_itself() -> None:
    assert len({name.lower() for name in WRITE_OPTIONS}) == len(WRITE_OPTIONS)


def test_schemas_are_named_for_one_topic() -> None:
    options = parse(
        topic="orders",
        valueSchema="latest",
        valueSubject="s",
        keySchema="key.avsc",
        schemaFraming="header",
        schemaCompatibility="FULL",
    )
    common = {"framing": "header", "compatibility": "FULL"}
    assert options.schemas == {
        "key": pylog.jobs.WriterSchema(schema="key.avsc", **common),
        "value": pylog.jobs.WriterSchema(subject="s", **common),
    }
    assert parse().encoders() == {}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"valueSchema": "a.avsc"}, "options valueSchema and keySchema need option topic"),
        ({"valueSubject": "s"}, "option valueSubject is for options valueSchema and keySchema"),
        (
            {"topic": "t", "valueSchema": "a.avsc", "schemaCompatibility": "SOME"},
            "option schemaCompatibility is 'SOME', expected NONE, BACKWARD",
        ),
    ],
)
def test_schemas_that_cannot_be_are_refused(given: dict[str, str], reason: str) -> None:
    assert reason in refusal({"path": "/logs", **given})
