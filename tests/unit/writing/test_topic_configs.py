"""What a KRaft broker's metadata says of topics, and what wins over what."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

import pylog
from pylog.config.stored_topic_configs import write_topic_configs
from pylog.errors import UnknownTopicConfigError
from pylog.files.durable_io import DurableIO
from pylog.results import ConfigSource
from pylog.writing.known_topic_configs import known_topic_configs
from tests.support.damage import flip
from tests.support.log_files import write_topic_id
from tests.support.metadata_log import (
    BROKER,
    METADATA,
    TOPIC,
    TOPIC_ID_TEXT,
    config_record,
    remove_topic_record,
    topic_record,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.writing.known_topic_configs import KnownTopicConfigs
    from tests.support.golden import GoldenRoot

OTHER_ID = bytes(range(1, 17))
DECIDED = [
    config_record(TOPIC, "orders", "cleanup.policy", "delete"),
    config_record(TOPIC, "orders", "retention.ms", "1"),
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Make the log directory of broker 1 with a partition of a topic."""
    logs = tmp_path / "logs"
    write_partition_metadata(logs / "orders-0")
    (logs / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=the-cluster\n")
    return logs


def write_partition_metadata(partition: Path, topic_id: str = TOPIC_ID_TEXT) -> None:
    partition.mkdir(parents=True, exist_ok=True)
    write_topic_id(partition, topic_id)


def known(directory: Path, **options: Any) -> KnownTopicConfigs:  # noqa: ANN401 - as of it
    return known_topic_configs(str(directory), **{"cleanup": "delete", **options})


def said(found: KnownTopicConfigs, name: str, topic: str = "orders") -> tuple[str, ConfigSource]:
    (entry,) = (each for each in found.entries[topic] if each.name == name)
    assert found.configs[topic].properties()[name] == entry.value
    return entry.value, entry.source


def broker_file(directory: Path, text: str) -> pylog.ServerProperties:
    path = directory.parent / "server.properties"
    path.write_text(f"log.dirs={directory}\n{text}")
    return pylog.ServerProperties.read(path)


def test_each_source_wins_over_those_after_it(directory: Path) -> None:
    """Kafka's precedence, with what is given before all: one is taken away after the other."""
    records = [
        topic_record("orders"),
        config_record(BROKER, "", "log.retention.ms", "14"),
        config_record(BROKER, "2", "log.retention.ms", "99"),
        config_record(BROKER, "1", "log.retention.ms", "13"),
        config_record(TOPIC, "orders", "retention.ms", "12"),
    ]
    file = broker_file(directory, "log.retention.hours=2\n")
    write_metadata_log(directory, records)
    found = known(directory, server_properties=file, properties={"retention.ms": "11"})
    assert said(found, "retention.ms") == ("11", ConfigSource.GIVEN_FOR_THIS_RUN)
    for count, expected in (
        (5, ("12", ConfigSource.DYNAMIC_TOPIC_CONFIG)),
        (4, ("13", ConfigSource.DYNAMIC_BROKER_CONFIG)),
        (3, ("14", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)),
        (1, ("7200000", ConfigSource.STATIC_BROKER_CONFIG)),
    ):
        shutil.rmtree(directory / METADATA)
        write_metadata_log(directory, records[:count])
        found = known(directory, server_properties=file)
        assert said(found, "retention.ms") == expected
        assert said(found, "cleanup.policy") == ("delete", ConfigSource.DEFAULT_CONFIG)
    found = known(directory, server_properties=broker_file(directory, ""))
    assert said(found, "retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)


def test_names_that_a_running_broker_cannot_change_say_nothing(directory: Path) -> None:
    write_metadata_log(
        directory,
        [
            topic_record("orders"),
            config_record(BROKER, "", "log.retention.hours", "1"),
            config_record(BROKER, "1", "max.connections", "7"),
            config_record(TOPIC, "orders", "min.insync.replicas", "2"),
            config_record(TOPIC, "orders", "message.format.version", "3.0"),
        ],
    )
    found = known(directory, server_properties=broker_file(directory, ""))
    assert said(found, "retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)


def test_the_metadata_alone_are_enough_where_they_say_all_that_decides(directory: Path) -> None:
    write_metadata_log(directory, [topic_record("orders"), *DECIDED])
    found = known(directory)
    assert said(found, "retention.ms") == ("1", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert found.cluster_metadata == str(directory / METADATA)
    # That decides over compaction is not said, but it is not compacted.
    assert not known(directory, cleanup="compact").configs["orders"].is_compact


@pytest.mark.parametrize("cleanup", ["delete", "compact"])
def test_what_nobody_says_is_not_guessed(directory: Path, cleanup: str) -> None:
    policy = config_record(TOPIC, "orders", "cleanup.policy", cleanup)
    missing = {
        "delete": "retention.ms",
        "compact": "delete.retention.ms, min.compaction.lag.ms",
    }[cleanup]
    write_metadata_log(directory, [topic_record("orders"), policy])
    with pytest.raises(UnknownTopicConfigError) as refused:
        known(directory, cleanup=cleanup)
    assert refused.value.topics == ("orders",)
    assert f"orders is not known: the cluster's metadata does not set {missing}." in str(
        refused.value
    )


def test_given_properties_are_the_only_limits_of_what_nobody_says(directory: Path) -> None:
    write_metadata_log(directory, [topic_record("orders")])
    found = known(directory, properties={"retention.bytes": "9"})
    assert said(found, "retention.bytes") == ("9", ConfigSource.GIVEN_FOR_THIS_RUN)
    assert said(found, "retention.ms") == ("-1", ConfigSource.NO_LIMIT)


@pytest.mark.parametrize("records", [[], [topic_record("orders"), remove_topic_record()]])
def test_a_topic_that_the_cluster_does_not_have_is_not_known(
    directory: Path, records: list[bytes]
) -> None:
    write_metadata_log(directory, [*records, *DECIDED])
    file = broker_file(directory, "log.retention.ms=1\n")
    with pytest.raises(
        UnknownTopicConfigError, match="orders is not known: the cluster has no such topic"
    ):
        known(directory, server_properties=file)
    # The broker's limits are not its own.
    found = known(directory, server_properties=file, properties={"retention.bytes": "9"})
    assert said(found, "retention.ms") == ("-1", ConfigSource.NO_LIMIT)


def test_another_topic_of_the_same_name_says_nothing(directory: Path) -> None:
    write_metadata_log(
        directory,
        [
            topic_record("orders"),
            remove_topic_record(),
            topic_record("orders", OTHER_ID),
            *DECIDED,
        ],
    )
    with pytest.raises(UnknownTopicConfigError) as refused:
        known(directory, server_properties=broker_file(directory, ""))
    assert (
        f"{directory / 'orders-0'} belongs to another topic of that name, which was deleted: it "
        f"has the id {TOPIC_ID_TEXT}, the cluster's has AQIDBAUGBwgJCgsMDQ4PEA"
    ) in str(refused.value)
    (directory / "orders-0" / "partition.metadata").unlink()
    with pytest.raises(UnknownTopicConfigError, match=r"orders-0 has no partition\.metadata"):
        known(directory)


def test_what_controllers_may_take_back_is_not_relied_upon(directory: Path) -> None:
    write_metadata_log(directory, [topic_record("orders"), *DECIDED], voters=(1, 2, 3))
    file = broker_file(directory, "")
    for options in ({}, {"properties": {"retention.ms": "5"}}):
        with pytest.raises(UnknownTopicConfigError, match="not all controllers may have agreed"):
            known(directory, server_properties=file, **options)
    given = {"retention.ms": "5", "cleanup.policy": "delete"}
    found = known(directory, server_properties=file, properties=given)
    assert said(found, "retention.ms") == ("5", ConfigSource.GIVEN_FOR_THIS_RUN)


def test_metadata_that_cannot_be_read_are_not_passed_over(directory: Path) -> None:
    partition = write_metadata_log(directory, [topic_record("orders"), *DECIDED])
    (log,) = partition.glob("*.log")
    flip(log, -3)
    given = {"retention.ms": "5", "cleanup.policy": "delete"}
    with pytest.raises(UnknownTopicConfigError) as refused:
        known(directory, server_properties=broker_file(directory, ""), properties=given)
    assert "the cluster's metadata cannot be relied upon" in str(refused.value)
    assert f"{log} at byte" in str(refused.value)
    assert "move __cluster_metadata-0 out of the log directory" in str(refused.value)


def test_a_value_that_no_broker_takes_is_not_passed_over(directory: Path) -> None:
    for record in (
        config_record(BROKER, "", "log.retention.ms", "0"),
        config_record(TOPIC, "orders", "retention.ms", "soon"),
    ):
        shutil.rmtree(directory / METADATA, ignore_errors=True)
        write_metadata_log(directory, [topic_record("orders"), record])
        with pytest.raises(UnknownTopicConfigError, match=r"retention\.ms is"):
            known(directory)


def test_whose_directory_it_is_has_to_be_known_where_brokers_differ(directory: Path) -> None:
    (directory / "meta.properties").unlink()
    records = [topic_record("orders"), *DECIDED]
    write_metadata_log(directory, records)
    assert said(known(directory), "retention.ms")[0] == "1"
    write_metadata_log(directory, [*records, config_record(BROKER, "2", "log.retention.ms", "9")])
    with pytest.raises(UnknownTopicConfigError, match=r"no meta\.properties says which broker's"):
        known(directory)


def test_what_is_stored_beside_the_logs_wins_and_a_warning_names_what_the_metadata_have(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_metadata_log(directory, [topic_record("orders"), *DECIDED])
    path = directory / "pylog-topic-configs.json"
    write_topic_configs(
        DurableIO(), path, {"orders": {"retention.ms": "1", "retention.bytes": "8"}}
    )
    found = known(directory)
    assert said(found, "retention.bytes") == ("8", ConfigSource.STORED_TOPIC_CONFIG)
    assert caplog.messages == []
    write_topic_configs(DurableIO(), path, {"orders": {"retention.ms": "-1"}})
    assert said(known(directory), "retention.ms") == ("-1", ConfigSource.STORED_TOPIC_CONFIG)
    assert caplog.messages == [
        "orders: retention.ms is -1, as pylog stored it here; the cluster's metadata has 1"
    ]
    found = known(directory, properties={"retention.ms": "4"})
    assert said(found, "retention.ms") == ("4", ConfigSource.GIVEN_FOR_THIS_RUN)
    assert len(caplog.messages) == 1


def test_a_topic_that_was_made_here_has_what_was_stored(directory: Path) -> None:
    pylog.create_topic(directory, "made-here", 1, properties={"retention.ms": "3"})
    write_metadata_log(directory, [topic_record("orders"), *DECIDED])
    found = known(directory)
    assert said(found, "retention.ms", "made-here") == ("3", ConfigSource.STORED_TOPIC_CONFIG)


def test_a_broker_may_keep_its_metadata_in_another_of_its_directories(directory: Path) -> None:
    elsewhere = directory.parent / "elsewhere"
    write_metadata_log(elsewhere, [topic_record("orders"), *DECIDED])
    shutil.copyfile(directory / "meta.properties", elsewhere / "meta.properties")
    for text in (f"metadata.log.dir={elsewhere}\n", f"log.dirs={elsewhere},{directory}\n"):
        found = known(directory, server_properties=broker_file(directory, text))
        assert said(found, "retention.ms") == ("1", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    # Of a directory that the file does not name, it says nothing of where its metadata is.
    copied = directory.parent / "copied"
    shutil.copytree(directory, copied)
    found = known(copied, server_properties=broker_file(directory, text))
    assert found.cluster_metadata is None
    (elsewhere / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=the-cluster\n")
    with pytest.raises(UnknownTopicConfigError, match="these are not its metadata"):
        known(directory, server_properties=broker_file(directory, text))


def test_topics_of_a_real_broker_have_what_its_dump_says(golden_root: GoldenRoot) -> None:
    case = golden_root.case("4.3.0/internal-logdir")
    found = known(case, server_properties=pylog.ServerProperties())
    for topic in ("orders", "invoices-eu"):
        assert said(found, "retention.ms", topic) == ("-1", ConfigSource.DYNAMIC_TOPIC_CONFIG)
        assert found.configs[topic].index_interval_bytes == 300
    for topic in ("__consumer_offsets", "__transaction_state"):
        assert said(found, "cleanup.policy", topic) == (
            "compact",
            ConfigSource.DYNAMIC_TOPIC_CONFIG,
        )
        assert found.configs[topic].segment_bytes == 1_048_576
    with pytest.raises(UnknownTopicConfigError) as refused:
        known(case)
    assert str(refused.value).startswith(
        "the configuration of topics invoices-eu, orders is not known: the cluster's metadata does "
        "not set cleanup.policy. "
    )


def test_a_topic_of_which_something_is_stored_has_kafkas_defaults_for_the_rest(
    directory: Path,
) -> None:
    write_metadata_log(directory, [topic_record("orders")])
    path = directory / "pylog-topic-configs.json"
    write_topic_configs(DurableIO(), path, {"orders": {"cleanup.policy": "compact"}})
    found = known(directory, cleanup="compact")
    assert said(found, "cleanup.policy") == ("compact", ConfigSource.STORED_TOPIC_CONFIG)
    assert said(found, "delete.retention.ms") == ("86400000", ConfigSource.DEFAULT_CONFIG)
