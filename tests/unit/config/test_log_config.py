from __future__ import annotations

import dataclasses
import pickle
import random

import pytest

from pylog.config import LogConfig, LogManagerConfig
from pylog.model import CompressionType, TimestampType
from tests.unit.config.kafkas_properties import TOPIC_PROPERTIES

INT32_MAX = 2_147_483_647
INT64_MAX = 9_223_372_036_854_775_807


def test_topic_defaults_are_those_of_kafka() -> None:
    assert LogConfig().properties() == {name: default for name, default, *_ in TOPIC_PROPERTIES}


def test_no_properties_give_the_defaults() -> None:
    assert LogConfig.from_properties({}) == LogConfig()
    assert LogManagerConfig.from_properties({}) == LogManagerConfig()


def test_fields_have_the_values_that_the_defaults_stand_for() -> None:
    config = LogConfig()
    assert config.segment_bytes == 1_073_741_824
    assert config.message_timestamp_type is TimestampType.CREATE_TIME
    assert config.message_timestamp_before_max_ms == INT64_MAX
    assert config.cleanup_policy == frozenset({"delete"})
    assert config.retention_bytes == -1
    assert config.min_cleanable_dirty_ratio == 0.5
    assert config.preallocate is False


def test_broker_wide_names_are_not_taken_for_topic_properties() -> None:
    for name in ("log.segment.bytes", "message.max.bytes", "min.insync.replicas"):
        with pytest.raises(ValueError, match="is not a property of a topic"):
            LogConfig.from_properties({name: "1048576"})


def test_values_given_to_the_constructor_are_checked_alike() -> None:
    with pytest.raises(ValueError, match=r"^property segment\.bytes is 13, expected a whole num"):
        LogConfig(segment_bytes=13)
    with pytest.raises(ValueError, match=r"^property preallocate is 1, expected true or false"):
        LogConfig(preallocate=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^property segment\.ms is True, expected a whole num"):
        LogConfig(segment_ms=True)
    with pytest.raises(ValueError, match=r"^property segment\.ms is 1\.5, expected a whole num"):
        LogConfig(segment_ms=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^property cleanup\.policy is 'compact', expected some"):
        LogConfig(cleanup_policy="compact")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^property num\.recovery\.threads\.per\.data\.dir is 0"):
        LogManagerConfig(num_recovery_threads_per_data_dir=0)
    with pytest.raises(ValueError, match=r"^property min\.cleanable\.dirty\.ratio is nan"):
        LogConfig(min_cleanable_dirty_ratio=float("nan"))


def test_compaction_lag_bounds_must_not_contradict_each_other() -> None:
    both = {"max.compaction.lag.ms": "100", "min.compaction.lag.ms": "200"}
    with pytest.raises(
        ValueError, match=r"min\.compaction\.lag\.ms is 200, expected at most .* 100"
    ):
        LogConfig.from_properties(both)
    same = LogConfig.from_properties(both | {"min.compaction.lag.ms": "100"})
    assert same.min_compaction_lag_ms == same.max_compaction_lag_ms


@pytest.mark.parametrize(
    ("policy", "is_compact", "is_delete"),
    [
        ("delete", False, True),
        ("compact", True, False),
        ("compact,delete", True, True),
        ("delete,compact", True, True),
        ("", False, False),
    ],
)
def test_cleanup_policy_says_what_is_done(
    *, policy: str, is_compact: bool, is_delete: bool
) -> None:
    config = LogConfig.from_properties({"cleanup.policy": policy})
    assert (config.is_compact, config.is_delete) == (is_compact, is_delete)


@pytest.mark.parametrize(
    ("policy", "segment_ms", "lag_ms", "expected"),
    [
        ("delete", 1000, 10, 1000),
        ("compact", 1000, 10, 10),
        ("compact", 10, 1000, 10),
        ("compact,delete", 1000, 999, 999),
        ("compact", 604_800_000, INT64_MAX, 604_800_000),
        ("", 1000, 10, 1000),
    ],
)
def test_compacted_logs_roll_in_time_for_the_compaction_lag(
    policy: str, segment_ms: int, lag_ms: int, expected: int
) -> None:
    config = LogConfig(
        cleanup_policy=frozenset(filter(None, policy.split(","))),
        segment_ms=segment_ms,
        max_compaction_lag_ms=lag_ms,
    )
    assert config.max_segment_ms == expected


class FixedBits(random.Random):
    """A source whose next bits are all ones, as many as asked for."""

    def getrandbits(self, k: int, /) -> int:
        return (1 << k) - 1


def test_there_is_no_jitter_unless_it_is_asked_for() -> None:
    assert LogConfig().random_segment_jitter(FixedBits()) == 0


@pytest.mark.parametrize(
    ("jitter_ms", "segment_ms", "expected"),
    [
        (1, 1000, 0),
        (1000, 604_800_000, 647),  # 2147483647 modulo 1000
        (1000, 7, 1),  # modulo 7: below segment.ms, too
        (INT64_MAX, INT64_MAX, INT32_MAX),
    ],
)
def test_jitter_is_a_random_integer_modulo_the_smaller_time(
    jitter_ms: int, segment_ms: int, expected: int
) -> None:
    config = LogConfig(segment_jitter_ms=jitter_ms, segment_ms=segment_ms)
    assert config.random_segment_jitter(FixedBits()) == expected


def test_jitter_takes_each_value_below_its_bound() -> None:
    config = LogConfig(segment_jitter_ms=5)
    source = random.Random(20_240_229)
    assert {config.random_segment_jitter(source) for _ in range(300)} == {0, 1, 2, 3, 4}


# What the topic says, against what a producer sent (Kafka: BrokerCompressionTest).
@pytest.mark.parametrize("producer", list(CompressionType))
@pytest.mark.parametrize(
    ("topic", "target"),
    [
        ("producer", None),
        ("uncompressed", CompressionType.NONE),
        ("gzip", CompressionType.GZIP),
        ("snappy", CompressionType.SNAPPY),
        ("lz4", CompressionType.LZ4),
        ("zstd", CompressionType.ZSTD),
    ],
)
def test_topic_codec_wins_over_the_producers(
    topic: str, target: CompressionType | None, producer: CompressionType
) -> None:
    config = LogConfig(compression_type=topic)
    expected = producer if target is None else target
    assert config.target_compression_type(producer) is expected


@pytest.mark.parametrize(
    ("topic", "level"),
    [
        ("producer", None),
        ("uncompressed", None),
        ("snappy", None),
        ("gzip", 4),
        ("lz4", 5),
        ("zstd", -6),
    ],
)
def test_level_is_that_of_the_topics_own_codec(topic: str, level: int | None) -> None:
    config = LogConfig(
        compression_type=topic,
        compression_gzip_level=4,
        compression_lz4_level=5,
        compression_zstd_level=-6,
    )
    assert config.target_compression_level == level


def test_configurations_are_values() -> None:
    config = LogConfig.from_properties({"segment.bytes": "1048576", "cleanup.policy": "compact"})
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - our own
    assert len({config, LogConfig.from_properties(config.properties()), LogConfig()}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.segment_bytes = 5  # type: ignore[misc]
