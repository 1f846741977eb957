"""A broker accepts partitions that ``pylog`` wrote as its own, and ``pylog`` what it made of them.

No record is cut or recovered, no index rebuilt, no directory put aside, and no file changes. What a
broker does change of any log when it starts, its own included (tried with 3.9.2 and 4.3.1):

* ``leader-epoch-checkpoint`` gets the epoch that begins with the start, at the log's end, where the
  last start's entry goes if nothing was appended under it;
* producer snapshots at or below the log start are removed, and those at which no segment begins,
  but for the last one;
* a log whose snapshots are all gone that way gets one at its end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.broker.acceptance import BROKER_PROPERTIES, Acceptance
from tests.broker.conftest import BROKER_VERSIONS
from tests.broker.dumps import INDEX_SANITY, INDEXES, RECORDS, record_line
from tests.broker.server_log import lines_of_logs
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_broker_tools import console_line, segment_files
from tests.support.partition_account import ISOLATIONS
from tests.support.written_partitions import WRITTEN_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.broker.acceptance_stages import BrokerStage

pytestmark = pytest.mark.broker

TOPICS = [each.name for each in WRITTEN_TOPICS]
OF_SEVERAL_SEGMENTS = [each.name for each in WRITTEN_TOPICS if "segment.bytes" in each.config]
BROKER_STAGES = ("read", "appended", "read_again")
READING_STAGES = ("read", "read_again")

of_topics = pytest.mark.parametrize("topic", TOPICS)
of_stages = pytest.mark.parametrize("stage_name", BROKER_STAGES)
of_reading_stages = pytest.mark.parametrize("stage_name", READING_STAGES)
of_isolations = pytest.mark.parametrize("isolation", ISOLATIONS)


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def acceptance(
    request: pytest.FixtureRequest, kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Acceptance]:
    """Give what was seen in all stages with a broker of one version."""
    directory = tmp_path_factory.mktemp(f"acceptance-{request.param}-")
    broker = KafkaBroker(directory, version=request.param, properties=BROKER_PROPERTIES)
    try:
        acceptance = Acceptance(broker)
        acceptance.run()
        yield acceptance
    finally:
        broker.kill()


def stage_of(acceptance: Acceptance, name: str) -> BrokerStage:
    stage: BrokerStage = getattr(acceptance, name)
    return stage


@of_topics
@of_isolations
@of_stages
def test_a_consumer_gets_every_record(
    acceptance: Acceptance, stage_name: str, isolation: str, topic: str
) -> None:
    stage = stage_of(acceptance, stage_name)
    assert stage.consumed[isolation][topic] == stage.accounts[topic].visible(isolation)


@of_topics
@of_isolations
@of_stages
def test_a_consumer_gets_every_record_from_an_offset_on(
    acceptance: Acceptance, stage_name: str, isolation: str, topic: str
) -> None:
    stage = stage_of(acceptance, stage_name)
    expected = stage.accounts[topic].visible(isolation, stage.middles[topic])
    assert stage.consumed_from[isolation][topic] == expected


@of_isolations
@of_reading_stages
def test_the_java_consumer_gets_every_record(
    acceptance: Acceptance, stage_name: str, isolation: str
) -> None:
    stage = stage_of(acceptance, stage_name)
    expected = [
        console_line(record)
        for account in stage.accounts.values()
        for record in account.visible(isolation)
    ]
    assert sorted(stage.printed[isolation]) == sorted(expected)


@of_topics
@of_stages
def test_the_log_begins_and_ends_where_it_was_written(
    acceptance: Acceptance, stage_name: str, topic: str
) -> None:
    stage = stage_of(acceptance, stage_name)
    account = stage.accounts[topic]
    assert stage.offset_ranges[topic] == (account.log_start_offset, account.log_end_offset)


@of_reading_stages
def test_the_broker_finds_offsets_by_time(acceptance: Acceptance, stage_name: str) -> None:
    stage = stage_of(acceptance, stage_name)
    for times, answers in stage.offsets_for_times:
        expected = {topic: stage.accounts[topic].offset_at(each) for topic, each in times.items()}
        assert answers == expected


def test_pylog_finds_the_same_offsets_by_time(acceptance: Acceptance) -> None:
    answers = [each for _, each in acceptance.read.offsets_for_times]
    assert answers == acceptance.own_offsets_for_times


@of_topics
@of_reading_stages
def test_the_broker_knows_the_producers_and_their_transactions(
    acceptance: Acceptance, stage_name: str, topic: str
) -> None:
    stage = stage_of(acceptance, stage_name)
    states = stage.accounts[topic].states
    ours = {each.producer_id for each in states}
    assert [each for each in stage.producers[topic] if each.producer_id in ours] == states
    if stage_name == "read":
        assert len(stage.producers[topic]) == len(states)


@of_stages
def test_the_broker_says_nothing_of_recovery(acceptance: Acceptance, stage_name: str) -> None:
    stage = stage_of(acceptance, stage_name)
    assert stage.complaints == []
    assert len(lines_of_logs(stage.server_log)) > len(TOPICS)


@of_topics
@of_reading_stages
def test_the_broker_changes_no_file(acceptance: Acceptance, stage_name: str, topic: str) -> None:
    stage = stage_of(acceptance, stage_name)
    assert stage.files_after[topic] == stage.files_of_an_unchanged_log(topic)


@of_topics
@of_stages
def test_leader_epochs_with_records_stay(
    acceptance: Acceptance, stage_name: str, topic: str
) -> None:
    stage = stage_of(acceptance, stage_name)
    at_start = acceptance.read if stage_name == "appended" else stage
    end_offset = at_start.accounts[topic].log_end_offset
    before, after = epochs(stage.epochs_before[topic]), epochs(stage.epochs_after[topic])
    kept = [entry for entry in before if entry[1] < end_offset]
    assert after[:-1] == kept
    assert after[-1] > max(before, default=(-1, -1))
    assert after[-1][1] == end_offset


def epochs(checkpoint: str) -> list[tuple[int, int]]:
    """Return epoch and start offset of every entry of a leader-epoch-checkpoint."""
    pairs = [line.split() for line in checkpoint.splitlines()[2:]]
    return [(int(epoch), int(start)) for epoch, start in pairs]


@of_topics
def test_pylog_opens_what_the_broker_left_without_recovery(
    acceptance: Acceptance, topic: str
) -> None:
    stage, account = acceptance.continued, acceptance.continued.accounts[topic]
    loading = stage.loadings[topic]
    assert loading.had_clean_shutdown
    assert (loading.recovered_segments, loading.truncated_bytes) == ([], 0)
    assert stage.offset_ranges[topic] == (account.log_start_offset, account.log_end_offset)
    assert stage.last_stable_offsets[topic] == account.last_stable_offset


@of_topics
def test_pylog_reads_all_that_the_broker_left(acceptance: Acceptance, topic: str) -> None:
    stage, account = acceptance.continued, acceptance.continued.accounts[topic]
    assert stage.read[topic] == account.visible("read_uncommitted")
    for isolation in ISOLATIONS:
        assert stage.scanned[isolation][topic] == account.visible(isolation)


@pytest.mark.parametrize("topic", [each.name for each in WRITTEN_TOPICS if each.is_crashed])
def test_what_a_crash_left_too_much_is_cut_before_the_broker_comes(
    acceptance: Acceptance, topic: str
) -> None:
    stage, account = acceptance.crashed, acceptance.crashed.accounts[topic]
    loading = stage.loadings[topic]
    assert not loading.had_clean_shutdown
    assert loading.truncated_bytes == acceptance.torn_bytes[topic] > 0
    assert stage.read[topic] == account.visible("read_uncommitted")
    assert stage.last_stable_offsets[topic] == account.last_stable_offset


@of_topics
@of_reading_stages
def test_the_tool_dumps_every_record(acceptance: Acceptance, stage_name: str, topic: str) -> None:
    account = stage_of(acceptance, stage_name).accounts[topic]
    dump = acceptance.dumps[stage_name][RECORDS]
    lines = dump.printed_of(f"{topic}-0")
    assert dump.records_of(f"{topic}-0") == list(map(record_line, account.records))
    batches = [line for line in lines if line.startswith("baseOffset: ")]
    assert all(line.endswith(" isvalid: true") for line in batches)
    assert not [line for line in lines if "invalid bytes" in line]


@of_reading_stages
def test_the_tool_finds_no_fault(acceptance: Acceptance, stage_name: str) -> None:
    dumps = acceptance.dumps[stage_name]
    for mode in (RECORDS, INDEXES, INDEX_SANITY):
        assert dumps[mode].complaints == "", mode
    sane = re.findall(
        r"^(/.*) (?:passed sanity check|is empty)\.$", dumps[INDEX_SANITY].stdout, re.MULTILINE
    )
    assert sane == [str(path) for path in dumps[INDEX_SANITY].files]


@pytest.mark.parametrize("topic", OF_SEVERAL_SEGMENTS)
def test_there_are_segments_with_indexes_to_judge(acceptance: Acceptance, topic: str) -> None:
    directory = acceptance.broker.partition_directory(topic)
    assert len(segment_files(directory)) >= 5
    for suffix in (".index", ".timeindex"):
        sizes = [path.stat().st_size for path in segment_files(directory, suffix)]
        assert sum(size > 0 for size in sizes) >= 5
    has_aborted = bool(acceptance.accounts[topic].aborted)
    assert bool(segment_files(directory, ".txnindex")) == has_aborted
