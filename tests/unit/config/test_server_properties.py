from __future__ import annotations

import logging
import pickle
import sys
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.config import CleanerConfig, LogConfig, LogManagerConfig
from pylog.config.server_properties import ServerProperties
from pylog.errors import InvalidConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The names that Kafka 4.3.1 has with that prefix (KafkaConfig.configNames).
LOG_NAMES = """
log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms
log.cleaner.enable log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleaner.threads
log.cleanup.policy log.dir log.dir.failure.timeout.ms log.dirs log.flush.interval.messages
log.flush.interval.ms log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms
log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes log.index.size.max.bytes
log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms
log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms log.message.timestamp.type
log.preallocate log.retention.bytes log.retention.check.interval.ms log.retention.hours
log.retention.minutes log.retention.ms log.roll.hours log.roll.jitter.hours log.roll.jitter.ms
log.roll.ms log.segment.bytes log.segment.delete.delay.ms
"""
WORDS = {
    "log.cleaner.enable": "false",
    "log.cleaner.io.buffer.load.factor": "0.5",
    "log.cleaner.min.cleanable.ratio": "0.5",
    "log.cleaner.dedupe.buffer.size": "9000000",
    "log.cleanup.policy": "compact",
    "log.message.timestamp.type": "LogAppendTime",
    "log.preallocate": "true",
}

# What KafkaConfig.extractLogConfigMap of Kafka 4.3.1 made of these files, where not the default.
GIVEN_AND_MADE = [
    ("", {}),
    ("log.segment.bytes=2097152", {"segment.bytes": "2097152"}),
    ("log.roll.hours=2", {"segment.ms": "7200000"}),
    ("log.roll.ms=5\nlog.roll.hours=2", {"segment.ms": "5"}),
    ("log.roll.hours=2\nlog.roll.ms=5", {"segment.ms": "5"}),
    ("log.roll.jitter.hours=1", {"segment.jitter.ms": "3600000"}),
    ("log.roll.jitter.hours=1\nlog.roll.jitter.ms=0", {}),
    ("log.retention.hours=1", {"retention.ms": "3600000"}),
    ("log.retention.minutes=3\nlog.retention.hours=1", {"retention.ms": "180000"}),
    ("log.retention.ms=9\nlog.retention.minutes=3\nlog.retention.hours=1", {"retention.ms": "9"}),
    ("log.retention.hours=1\nlog.retention.minutes=3\nlog.retention.ms=9", {"retention.ms": "9"}),
    ("log.retention.hours=-1", {"retention.ms": "-1"}),
    ("log.retention.minutes=-5\nlog.retention.hours=2", {"retention.ms": "-1"}),
    ("log.retention.ms=-7\nlog.retention.hours=2", {"retention.ms": "-1"}),
    ("log.retention.hours=2147483647", {"retention.ms": "7730941129200000"}),
    ("log.retention.hours=0\nlog.retention.ms=5", {"retention.ms": "5"}),
    ("log.retention.bytes=-55", {"retention.bytes": "-55"}),
    ("log.flush.interval.ms=7\nlog.flush.scheduler.interval.ms=500", {"flush.ms": "7"}),
    ("log.flush.scheduler.interval.ms=500", {"flush.ms": "500"}),
    ("log.flush.interval.messages=3", {"flush.messages": "3"}),
    ("log.cleanup.policy=", {"cleanup.policy": ""}),
    ("log.cleanup.policy=compact, delete", {"cleanup.policy": "compact,delete"}),
    ("message.max.bytes=77", {"max.message.bytes": "77"}),
    ("max.decompressed.message.bytes=78", {"max.decompressed.message.bytes": "78"}),
    (
        "compression.type=zstd\ncompression.zstd.level=5\ncompression.gzip.level=2",
        {
            "compression.type": "zstd",
            "compression.zstd.level": "5",
            "compression.gzip.level": "2",
        },
    ),
    ("compression.lz4.level = 12", {"compression.lz4.level": "12"}),
    ("log.index.size.max.bytes=1000", {"segment.index.bytes": "1000"}),
    ("log.index.interval.bytes=0", {"index.interval.bytes": "0"}),
    ("log.segment.delete.delay.ms=1", {"file.delete.delay.ms": "1"}),
    ("log.preallocate=TRUE", {"preallocate": "true"}),
    (
        (
            "log.message.timestamp.type=LogAppendTime\nlog.message.timestamp.before.max.ms=1\n"
            "log.message.timestamp.after.max.ms=2"
        ),
        {
            "message.timestamp.type": "LogAppendTime",
            "message.timestamp.before.max.ms": "1",
            "message.timestamp.after.max.ms": "2",
        },
    ),
    (
        (
            "log.cleaner.delete.retention.ms=1\nlog.cleaner.min.compaction.lag.ms=2\n"
            "log.cleaner.max.compaction.lag.ms=3\nlog.cleaner.min.cleanable.ratio=0.25"
        ),
        {
            "delete.retention.ms": "1",
            "min.compaction.lag.ms": "2",
            "max.compaction.lag.ms": "3",
            "min.cleanable.dirty.ratio": "0.25",
        },
    ),
    ("log.retention.hours=1\nlog.retention.hours=2", {"retention.ms": "7200000"}),
    ("log.retention.\\\n  hours = \\u0031", {"retention.ms": "3600000"}),
]


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], ServerProperties]:
    def read(text: str) -> ServerProperties:
        path = tmp_path / "server.properties"
        path.write_bytes(text.encode("iso-8859-1"))
        return ServerProperties.read(path)

    return read


@pytest.mark.parametrize(("text", "made"), GIVEN_AND_MADE)
def test_broker_wide_names_give_topics_what_kafka_gives_them(
    read: Callable[[str], ServerProperties], text: str, made: dict[str, str]
) -> None:
    properties = read(text).log_config.properties()
    defaults = LogConfig().properties()
    assert {name: each for name, each in properties.items() if each != defaults[name]} == made


def test_each_name_of_kafka_with_the_prefix_is_known(
    read: Callable[[str], ServerProperties],
) -> None:
    for name in LOG_NAMES.split():
        read(f"{name}={WORDS.get(name, '99')}")


def test_all_properties_of_the_manager_and_the_cleaner_are_read(
    read: Callable[[str], ServerProperties],
) -> None:
    found = read(
        "log.retention.check.interval.ms=11\nreplica.high.watermark.checkpoint.interval.ms=12\n"
        "log.flush.scheduler.interval.ms=13\nnum.recovery.threads.per.data.dir=14\n"
        "log.cleaner.enable=false\nlog.cleaner.threads=2\nlog.cleaner.dedupe.buffer.size=2097154\n"
        "log.cleaner.io.buffer.size=16\nlog.cleaner.io.buffer.load.factor=0.75\n"
        "log.cleaner.io.max.bytes.per.second=1e6\nlog.cleaner.backoff.ms=17\n"
    )
    assert found.manager_config == LogManagerConfig(
        retention_check_interval_ms=11,
        high_watermark_checkpoint_interval_ms=12,
        flush_scheduler_interval_ms=13,
        num_recovery_threads_per_data_dir=14,
    )
    assert found.cleaner_config == CleanerConfig(
        enable=False,
        threads=2,
        dedupe_buffer_size=2_097_154,
        io_buffer_size=16,
        dedupe_buffer_load_factor=0.75,
        io_max_bytes_per_second=1e6,
        backoff_ms=17,
    )
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - our own


def test_an_empty_file_has_the_defaults_of_kafka(read: Callable[[str], ServerProperties]) -> None:
    found = read("# nothing\n")
    assert found.log_config == LogConfig()
    assert found.manager_config == LogManagerConfig()
    assert found.cleaner_config.properties() == {
        "log.cleaner.enable": "true",
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": "134217728",
        "log.cleaner.io.buffer.size": "524288",
        "log.cleaner.io.buffer.load.factor": "0.9",
        "log.cleaner.io.max.bytes.per.second": repr(sys.float_info.max),
        "log.cleaner.backoff.ms": "15000",
    }
    assert found.log_dirs == ("/tmp/kafka-logs",)  # noqa: S108 - Kafka's
    assert found.num_partitions == 1


@pytest.mark.parametrize(
    ("text", "directories"),
    [
        ("log.dirs= /a , /b \nlog.dir=/c", ("/a", "/b")),
        ("log.dir=/c\nlog.dirs=/a", ("/a",)),
        ("log.dir=/c", ("/c",)),
        ("log.dirs=/a,/b,/a", ("/a", "/b")),
        (r"log.dirs=C:\\kafka\ logs", (r"C:\kafka logs",)),
    ],
)
def test_log_dirs_count_before_log_dir(
    read: Callable[[str], ServerProperties], text: str, directories: tuple[str, ...]
) -> None:
    assert read(text).log_dirs == directories


def test_names_that_have_nothing_to_do_with_logs_are_passed_over(
    read: Callable[[str], ServerProperties],
) -> None:
    text = "process.roles=broker\nlisteners=PLAINTEXT://:9092\nnum.partitions=6\nzzz=1\n"
    found = read(f"{text}log.dir.failure.timeout.ms=x\nsasl.jaas.config=a b;\nmetadata.log.dir=/m")
    assert (found.log_config, found.num_partitions) == (LogConfig(), 6)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=1\n\nlog.retention.hours=x", r"line 3: property log\.retention\.hours is 'x', expect"),
        ("log.retention.hours=0", r"line 1: property log\.retention\.hours is 0, expected a whole"),
        ("a=1\nlog.retention.ms=0", "line 2: .* from 1 on, or a negative one for unlimited"),
        ("log.retention.hours=5\nlog.retention.minutes=0", r"line 2: property .*minutes is 0, exp"),
        ("log.retention.minutes=2147483648", r"line 1: property log\.retention\.minutes is 21474"),
        ("log.retention.ms=5\nlog.retention.hours=abc", r"line 2: property log\.retention\.hours"),
        ("log.retention.ms=\nlog.retention.hours=3", r"line 1: property log\.retention\.ms is ''"),
        ("log.roll.ms=5\nlog.roll.hours=0", r"line 2: property log\.roll\.hours is 0"),
        ("log.roll.ms=0", r"line 1: property log\.roll\.ms is 0"),
        ("log.roll.jitter.ms=-1", r"line 1: property log\.roll\.jitter\.ms is -1"),
        ("log.flush.interval.ms=-1", r"line 1: property log\.flush\.interval\.ms is -1"),
        ("log.dirs=/a,,/b", r"line 1: property log\.dirs is '/a,,/b', expected paths with commas"),
        ("log.dirs=\nlog.dir=/c", r"line 1: property log\.dirs is ''"),
        ("log.cleanup.policy=Compact", r"line 1: property log\.cleanup\.policy is 'Compact'"),
        ("compression.type=none", r"line 1: property compression\.type is 'none', expected one of"),
        ("num.partitions=0", r"line 1: property num\.partitions is 0"),
        ("log.index.size.max.bytes=3", r"line 1: property log\.index\.size\.max\.bytes is 3"),
        ("log.cleaner.backoff.ms=-1", r"line 1: property log\.cleaner\.backoff\.ms is -1"),
        ("log.cleaner.threads=0", r"line 1: property log\.cleaner\.threads is 0"),
        ("log.cleaner.io.max.bytes.per.second=-3", "line 1: property .* a number, 1 to "),
        ("log.cleaner.io.buffer.load.factor=1.5", r"line 1: property .*0\.01 to 1"),
        (
            "log.cleaner.threads=2\nlog.cleaner.dedupe.buffer.size=2097153",
            r"property log\.cleaner\.dedupe\.buffer\.size is 2097153, expected more than 1 MiB for",
        ),
        (
            "log.cleaner.min.compaction.lag.ms=10\nlog.cleaner.max.compaction.lag.ms=5",
            r"property min\.compaction\.lag\.ms is 10, expected at most max\.comp.*, 5",
        ),
        (
            "log.retention.hour=1",
            r"line 1: log\.retention\.hour is not a property of a broker; did you mean log\.reten",
        ),
        (
            "a=1\nretention.ms=-1",
            r"line 2: retention\.ms is a property of topics, .*: its name is log\.retention\.ms or",
        ),
        ("cleanup.policy=compact", r"its name is log\.cleanup\.policy$"),
        ("message.format.version=3.0", r"line 1: message.* was removed in Kafka 4\.0"),
        ("a=\\u00", "line 1: .*without four hexadecimal digits"),
    ],
)
def test_what_a_broker_would_not_start_with_names_file_line_and_property(
    read: Callable[[str], ServerProperties], tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(InvalidConfigurationError, match=reason) as refused:
        read(text)
    assert str(refused.value).startswith(f"{tmp_path / 'server.properties'}: ")
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "name",
    [
        "log.message.format.version",
        "log.message.timestamp.difference.max.ms",
        "log.message.downconversion.enable",
    ],
)
def test_what_brokers_of_3_9_have_and_later_ones_have_not_is_passed_over(
    read: Callable[[str], ServerProperties], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    assert read(f"{name}=3.0\nlog.retention.ms=5").log_config.retention_ms == 5
    assert f"{name} was removed in Kafka 4.0, and is passed over" in caplog.text


def test_a_file_that_is_not_there_or_is_a_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigurationError, match="gone: there is no such file"):
        ServerProperties.read(tmp_path / "gone")
    with pytest.raises(InvalidConfigurationError) as caught:
        ServerProperties.read(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: this is a directory: give a broker's file of server properties"
    )


def test_removed_properties_of_topics_are_refused_with_the_version() -> None:
    for name in (
        "message.format.version",
        "message.timestamp.difference.max.ms",
        "message.downconversion.enable",
    ):
        with pytest.raises(ValueError, match=rf"^{name} was removed in Kafka 4\.0: remove it"):
            LogConfig.from_properties({name: "1"})


def test_a_directory_that_the_file_does_not_name_gets_a_warning(
    read: Callable[[str], ServerProperties],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "logs")
    found = read(f"log.dirs=/data/a,{tmp_path}/link\nlog.segment.bytes=5000\n")
    with caplog.at_level(logging.WARNING):
        with pylog.logs.own_log_directory(tmp_path / "logs", server_properties=found) as manager:
            assert manager.config.segment_bytes == 5000
        assert caplog.messages == []
        with pylog.logs.own_log_directory(tmp_path / "other", server_properties=found):
            pass
        with pylog.logs.own_log_directory(tmp_path / "other", server_properties=read("")):
            pass
    [warning] = caplog.messages
    assert warning == (
        f"{tmp_path}/other is not among the log.dirs of {tmp_path}/server.properties, which are "
        f"/data/a, {tmp_path}/link: its configuration is used all the same"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log.dirs=/a,/b,/c\n", ["/a", "/b", "/other"]),
        ("log.dirs=/c,/b,/a\n", ["/b", "/a", "/other"]),
        ("log.dirs=/a,/b\nmetadata.log.dir=/b\n", ["/b", "/a", "/other"]),
    ],
)
def test_directories_are_in_the_order_in_which_a_node_takes_them(
    read: Callable[[str], ServerProperties], text: str, expected: list[str]
) -> None:
    assert read(text).in_order(["/other", "/b", "/a"]) == expected
