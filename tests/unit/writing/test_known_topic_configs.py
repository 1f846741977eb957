from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pylog.config import LogConfig
from pylog.config.server_properties import ServerProperties
from pylog.config.stored_topic_configs import write_topic_configs
from pylog.errors import UnknownTopicConfigError, UnknownTopicOrPartitionError
from pylog.files.durable_io import DurableIO
from pylog.writing.known_topic_configs import known_topic_configs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Make partitions of two topics, of which one has stored properties, and an internal one."""
    for name in ("stored-0", "stored-1", "copied-0", "__consumer_offsets-7"):
        (tmp_path / "logs" / name).mkdir(parents=True)
    (tmp_path / "logs" / f"gone-0.{'0' * 32}-delete").mkdir()
    path = tmp_path / "logs" / "pylog-topic-configs.json"
    write_topic_configs(DurableIO(), path, {"stored": {"retention.ms": "5", "segment.ms": "6"}})
    return tmp_path / "logs"


def configs_of(
    directory: Path,
    topics: Iterable[str] | None = None,
    **options: Any,  # noqa: ANN401 - as of it
) -> dict[str, LogConfig]:
    return known_topic_configs(str(directory), topics, cleanup="delete", **options).configs


def broker(directory: Path) -> ServerProperties:
    path = directory.parent / "server.properties"
    path.write_text(f"log.retention.ms=7\nlog.segment.bytes=2000000\nlog.dirs={directory}\n")
    return ServerProperties.read(path)


def test_a_topic_of_which_nothing_is_known_is_refused_by_name(directory: Path) -> None:
    with pytest.raises(UnknownTopicConfigError) as refused:
        configs_of(directory)
    assert refused.value.topics == ("__consumer_offsets", "copied")
    assert "of topics __consumer_offsets, copied is not known: " in str(refused.value)


def test_topics_that_are_not_asked_for_need_not_be_known(directory: Path) -> None:
    configs = configs_of(directory, ["stored"])
    assert configs == {"stored": LogConfig(retention_ms=5, segment_ms=6)}


def test_a_topics_own_properties_win_over_the_brokers(directory: Path) -> None:
    configs = configs_of(directory, server_properties=broker(directory))
    assert list(configs) == ["__consumer_offsets", "copied", "stored"]
    assert configs["copied"] == LogConfig(retention_ms=7, segment_bytes=2_000_000)
    assert configs["stored"] == LogConfig(retention_ms=5, segment_ms=6, segment_bytes=2_000_000)


def test_given_properties_win_over_all_others(directory: Path) -> None:
    configs = configs_of(
        directory, server_properties=broker(directory), properties={"retention.ms": "9"}
    )
    assert configs["copied"].retention_ms == configs["stored"].retention_ms == 9
    assert configs["stored"].segment_ms == 6


def test_of_a_topic_of_which_nothing_else_is_known_only_they_count(directory: Path) -> None:
    configs = configs_of(directory, properties={"retention.bytes": "100"})
    assert configs["copied"] == LogConfig(retention_bytes=100, retention_ms=-1)
    assert configs["stored"].retention_ms == 5


def test_internal_topics_keep_what_kafka_gives_them_unless_they_are_named(directory: Path) -> None:
    given = {"cleanup.policy": "delete", "retention.ms": "1"}
    offsets = "__consumer_offsets"
    for found in (
        configs_of(directory, server_properties=broker(directory)),
        configs_of(directory, properties=given),
        configs_of(directory, [offsets], properties={"retention.ms": "1"}),
    ):
        assert found[offsets].is_compact
        assert not found[offsets].is_delete
    named = configs_of(directory, [offsets], properties=given)
    assert named[offsets].is_delete
    assert named[offsets].retention_ms == 1


def test_a_topic_that_is_not_there_is_refused(directory: Path) -> None:
    for topic in ("sorted", "gone"):
        with pytest.raises(UnknownTopicOrPartitionError, match=f"no topic '{topic}'"):
            configs_of(directory, ["stored", topic])
    with pytest.raises(UnknownTopicOrPartitionError, match="did you mean 'stored'"):
        configs_of(directory, ["sorted"])


def test_one_name_is_not_a_list_of_names(directory: Path) -> None:
    with pytest.raises(TypeError, match=r"\['stored'\]"):
        configs_of(directory, "stored")


def test_a_wrong_property_is_named(directory: Path) -> None:
    with pytest.raises(ValueError, match=r"retention\.ms"):
        configs_of(directory, properties={"retention.ms": "soon"})


def test_nothing_is_changed(directory: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    configs_of(directory, properties={"retention.ms": "9"})
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before
