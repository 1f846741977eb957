from __future__ import annotations

import dataclasses
import errno
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig
from pylog.config.stored_topic_configs import (
    TOPIC_CONFIGS,
    TopicConfigs,
    read_topic_configs,
    write_topic_configs,
)
from pylog.errors import CorruptCheckpointError, KafkaStorageError
from pylog.files.durable_io import DurableIO
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
{
  "version": 1,
  "topics": {
    "orders": {
      "cleanup.policy": "compact"
    },
    "web": {
      "segment.bytes": "1024",
      "flush.messages": "1"
    }
  }
}
"""
CONFIGS = {
    "web": {"segment.bytes": "1024", "flush.messages": "1"},
    "orders": {"cleanup.policy": "compact"},
}


def test_the_file_is_json_with_topics_in_order(tmp_path: Path) -> None:
    path = tmp_path / "configs.json"
    write_topic_configs(DurableIO(), path, CONFIGS)
    assert path.read_text() == TEXT
    assert read_topic_configs(path) == CONFIGS


def test_without_a_file_no_topic_has_a_configuration(tmp_path: Path) -> None:
    assert read_topic_configs(tmp_path / "configs.json") == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "topic configurations are not JSON"),
        ("[" * 100_000, "topic configurations are not JSON"),
        ("[]", "not of the form"),
        ('{"version": 1}', "not of the form"),
        ('{"version": 1, "topics": {}, "more": 1}', "not of the form"),
        ('{"version": 1, "topics": []}', "not of the form"),
        ('{"version": 2, "topics": {}}', "have version 2, expected 1"),
        ('{"version": 1, "topics": {"t": 1}}', "topic 't' is not an object of texts"),
        ('{"version": 1, "topics": {"t": {"segment.bytes": 1}}}', "'t' is not an object of texts"),
    ],
)
def test_a_file_of_another_form_is_an_error_that_names_it(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "configs.json"
    path.write_text(text)
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        read_topic_configs(path)
    assert str(path) in str(caught.value)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "configs.json"
    write_topic_configs(DurableIO(), path, CONFIGS)
    full = FaultyIO(Fault(kinds=frozenset({Kind.WRITE}), error_number=errno.ENOSPC))
    with pytest.raises(KafkaStorageError, match="No space left"):
        write_topic_configs(full, path, {})
    assert path.read_text() == TEXT


def test_a_given_configuration_wins_over_a_stored_one_and_that_over_the_default(
    tmp_path: Path,
) -> None:
    write_topic_configs(DurableIO(), tmp_path / TOPIC_CONFIGS, CONFIGS)
    configs = TopicConfigs(LogConfig(flush_ms=7), {"orders": LogConfig(segment_bytes=4096)})
    configs.load([str(tmp_path)])
    assert configs.config_of("orders") == LogConfig(segment_bytes=4096)
    assert configs.config_of("web") == LogConfig(segment_bytes=1024, flush_messages=1, flush_ms=7)
    assert configs.config_of("others") == LogConfig(flush_ms=7)


def test_the_first_directory_that_names_a_topic_counts(tmp_path: Path) -> None:
    for name, size in (("first", "1024"), ("second", "2048")):
        (tmp_path / name).mkdir()
        path = tmp_path / name / TOPIC_CONFIGS
        write_topic_configs(DurableIO(), path, {"web": {"segment.bytes": size}})
    configs = TopicConfigs(LogConfig())
    configs.load([str(tmp_path / "first"), str(tmp_path / "second")])
    assert configs.config_of("web") == LogConfig(segment_bytes=1024)


def test_a_stored_property_that_kafka_does_not_know_is_refused(tmp_path: Path) -> None:
    path = tmp_path / TOPIC_CONFIGS
    write_topic_configs(DurableIO(), path, {"web": {"segment.size": "1"}})
    with pytest.raises(CorruptCheckpointError, match=r"topic 'web'.*segment\.size") as refused:
        TopicConfigs(LogConfig()).load([str(tmp_path)])
    assert str(path) in str(refused.value)


def test_only_topics_of_which_something_is_said_are_configured(tmp_path: Path) -> None:
    path = tmp_path / TOPIC_CONFIGS
    write_topic_configs(DurableIO(), path, {"web": {}, "orders": {"retention.ms": "1"}})
    configs = TopicConfigs(None, {"given": LogConfig()})
    configs.load([str(tmp_path)])
    topics = ["web", "z", "given", "copied", "z", "orders", "__consumer_offsets"]
    assert configs.unconfigured(topics) == ["__consumer_offsets", "copied", "z"]
    assert TopicConfigs(LogConfig()).unconfigured(topics) == [], "the default was given"


def test_a_topic_is_forgotten_with_what_is_stored_of_it(tmp_path: Path) -> None:
    configs = TopicConfigs(None)
    configs.set_stored("web", {"retention.ms": "1"})
    assert configs.config_of("web") == LogConfig(retention_ms=1)
    assert configs.stored_properties("web") == {"retention.ms": "1"}
    configs.set_stored("web", None)
    configs.set_stored("web", None)
    assert configs.stored_properties("web") is None
    assert configs.unconfigured(["web"]) == ["web"]


@pytest.mark.parametrize(
    ("topic", "policy", "retention_ms"),
    [
        ("__consumer_offsets", "compact", 3_600_000),
        ("__transaction_state", "compact", 3_600_000),
        ("__share_group_state", "delete", -1),
        ("__remote_log_metadata", "delete", -1),
        ("orders", "delete", 3_600_000),
    ],
)
def test_topics_of_brokers_are_not_removed_from_by_the_age_that_all_topics_have(
    topic: str, policy: str, retention_ms: int
) -> None:
    configs = TopicConfigs(LogConfig(retention_ms=3_600_000))
    config = configs.config_of(topic)
    assert (config.properties()["cleanup.policy"], config.retention_ms) == (policy, retention_ms)
    configs.set_stored(topic, {"flush.ms": "5"})
    assert configs.config_of(topic) == dataclasses.replace(config, flush_ms=5)
    configs.set_stored(topic, {"cleanup.policy": "", "retention.ms": "7"})
    own = configs.config_of(topic)
    assert (own.cleanup_policy, own.retention_ms) == (frozenset(), 7)
