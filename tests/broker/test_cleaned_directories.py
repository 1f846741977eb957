"""A broker accepts a log directory that ``pylog`` compacted and trimmed, and has nothing to mend.

Consumers get exactly the survivors. The broker's own cleaner, which goes over all of it, changes no
record and no batch that has one: it joins segments that have become small, and drops what only the
clock or a producer's end kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.broker.cleaned_acceptance import (
    BROKER_PROPERTIES,
    CLEANED_TOPICS,
    COMPACTED_TOPICS,
    TRIMMED_TOPICS,
    CleanedAcceptance,
)
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_tools import segment_files
from tests.support.partition_account import ISOLATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.broker.acceptance_stages import BrokerStage

pytestmark = pytest.mark.broker

TOPICS = [each.name for each in CLEANED_TOPICS]
COMPACTED = [each.name for each in COMPACTED_TOPICS]
TRIMMED = [each.name for each in TRIMMED_TOPICS]

of_topics = pytest.mark.parametrize("topic", TOPICS)
of_stages = pytest.mark.parametrize("stage_name", ["read", "cleaned_again"])
of_isolations = pytest.mark.parametrize("isolation", ISOLATIONS)


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def acceptance(
    request: pytest.FixtureRequest, kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CleanedAcceptance]:
    """Give what was seen in all stages with a broker of one version."""
    directory = tmp_path_factory.mktemp(f"cleaned-{request.param}-")
    broker = KafkaBroker(directory, version=request.param, properties=BROKER_PROPERTIES)
    try:
        acceptance = CleanedAcceptance(broker)
        acceptance.run()
        yield acceptance
    finally:
        broker.kill()


def stage_of(acceptance: CleanedAcceptance, name: str) -> BrokerStage:
    stage: BrokerStage = getattr(acceptance, name)
    return stage


@of_topics
def test_there_was_something_to_clean(acceptance: CleanedAcceptance, topic: str) -> None:
    before, after = acceptance.written[topic], acceptance.accounts[topic]
    assert len(after.visible("read_committed")) < len(before.records) * 3 / 4
    if topic in COMPACTED:
        assert len(acceptance.segments[topic].bases) >= 3
        assert after.visible("read_committed")


@of_topics
@of_isolations
@of_stages
def test_consumers_get_exactly_the_survivors(
    acceptance: CleanedAcceptance, stage_name: str, isolation: str, topic: str
) -> None:
    stage = stage_of(acceptance, stage_name)
    assert stage.consumed[isolation][topic] == stage.accounts[topic].visible(isolation)


@of_topics
@of_stages
def test_the_log_begins_and_ends_where_it_should(
    acceptance: CleanedAcceptance, stage_name: str, topic: str
) -> None:
    stage = stage_of(acceptance, stage_name)
    account = stage.accounts[topic]
    assert stage.offset_ranges[topic] == (account.log_start_offset, account.log_end_offset)


@of_stages
def test_the_broker_says_nothing_of_recovery_or_trouble(
    acceptance: CleanedAcceptance, stage_name: str
) -> None:
    assert stage_of(acceptance, stage_name).complaints == []


@of_topics
def test_a_broker_that_has_nothing_to_clean_changes_no_file(
    acceptance: CleanedAcceptance, topic: str
) -> None:
    """But for producer snapshots: those below the log start, and those without a segment."""
    stage = acceptance.read
    assert stage.files_after[topic] == stage.files_of_an_unchanged_log(topic)


@pytest.mark.parametrize("topic", COMPACTED)
def test_the_brokers_cleaner_keeps_every_batch_with_records(
    acceptance: CleanedAcceptance, topic: str
) -> None:
    assert acceptance.batches[topic]
    assert acceptance.batches_again[topic] == acceptance.batches[topic]


def test_the_brokers_cleaner_went_over_all_of_it(acceptance: CleanedAcceptance) -> None:
    assert acceptance.cleaned_offsets() == acceptance.bounds
    for topic in COMPACTED:
        assert re.search(
            rf"Cleaner 0: Cleaning (?:log )?.*{topic}-0", acceptance.cleaned_again.server_log
        )
        assert not re.search(
            rf"Cleaner 0: Cleaning (?:log )?.*{topic}-0", acceptance.read.server_log
        )


@pytest.mark.parametrize("topic", TRIMMED)
def test_the_brokers_cleaner_leaves_other_topics_alone(
    acceptance: CleanedAcceptance, topic: str
) -> None:
    """But for producer snapshots of an empty log, which come and go from start to start."""
    stage = acceptance.cleaned_again
    before, after = (
        {name: each for name, each in files[topic].items() if not name.endswith(".snapshot")}
        for files in (stage.files_before, stage.files_after)
    )
    assert after == before


@of_topics
def test_pylog_reads_what_the_brokers_cleaner_left(
    acceptance: CleanedAcceptance, topic: str
) -> None:
    stage, account = acceptance.opened, acceptance.opened.accounts[topic]
    loading = stage.loadings[topic]
    assert loading.had_clean_shutdown
    assert (loading.recovered_segments, loading.truncated_bytes) == ([], 0)
    assert stage.offset_ranges[topic] == (account.log_start_offset, account.log_end_offset)
    assert stage.read[topic] == account.visible("read_uncommitted")


@pytest.mark.parametrize("topic", COMPACTED)
def test_segments_have_become_fewer(acceptance: CleanedAcceptance, topic: str) -> None:
    directory = acceptance.broker.partition_directory(topic)
    assert len(segment_files(directory)) < len(acceptance.segments[topic].bases)
