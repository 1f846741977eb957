from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.log_files import write_log_start_offsets
from tests.unit.admin.test_share_groups import (
    CASE,
    TOPIC_ID,
    key,
    snapshot,
    write_group,
    write_states,
    write_topic,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome


def test_share_groups_in_tables_json_and_csv(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_group(tmp_path, shared=(0, 1, 2))
    write_topic(tmp_path, 50)
    write_topic(tmp_path, 50, partition=1)
    write_states(tmp_path, (key(0), snapshot(3, 5)), (key(1), snapshot(-1, None)))
    done = pylog_run("groups", tmp_path)
    assert (done.status, done.error) == (0, "")
    assert [line.split() for line in done.lines[1:5]] == [
        [
            *("GROUP", "TOPIC", "PARTITION", "STATE-EPOCH", "LEADER-EPOCH", "START-OFFSET"),
            *("DELIVERY-COMPLETE", "LOG-END-OFFSET", "LAG"),
        ],
        ["billing", "orders", "0", "2", "7", "3", "5", "50", "42"],
        ["billing", "orders", "1", "2", "7", "-", "-", "50", "-"],
        ["billing", "orders", "2", "-", "-", "-", "-", "-", "-"],
    ]
    assert pylog_run("groups", tmp_path, "--csv").lines == ["billing,orders,0,3"]
    (group,) = json.loads(pylog_run("groups", tmp_path, "--json").output)["groups"]
    assert group["sharePartitions"][0] == {
        "topic": "orders",
        "topicId": TOPIC_ID,
        "partition": 0,
        "stateEpoch": 2,
        "leaderEpoch": 7,
        "startOffset": 3,
        "deliveryCompleteCount": 5,
        "logStartOffset": 0,
        "logEndOffset": 50,
        "lag": 42,
    }


def test_a_topic_without_a_name_is_shown_by_its_id_and_is_no_line_of_csv(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_group(tmp_path)
    write_states(tmp_path, (key(0), snapshot(3)))
    done = pylog_run("groups", tmp_path)
    assert done.lines[2].split() == ["billing", TOPIC_ID, "0", "2", "7", "3", "0", "-", "-"]
    assert pylog_run("groups", tmp_path, "--csv").lines == []


def test_a_start_below_the_logs_start_and_unreadable_records_are_told(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_group(tmp_path)
    write_topic(tmp_path, 50)
    write_log_start_offsets(tmp_path, {("orders", 0): 20})
    write_states(tmp_path, (key(0), snapshot(3)), (b"\x00", b"x"))
    done = pylog_run("groups", tmp_path)
    assert done.status == 1
    assert "billing is at 3 in orders-0, which begins at 20: offsets 3 to 19 are gone" in done.error
    assert "1 record of __share_group_state cannot be understood" in done.error
    assert "--share-group-state-decoder" in done.error


@pytest.mark.parametrize("topic", ["dlq.jobs", "dlq.auto"])
def test_the_line_of_a_group_names_its_dead_letter_topic(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome], topic: str
) -> None:
    done = pylog_run("groups", golden_root.case(CASE))
    assert [line for line in done.lines if line.endswith(f", dead letters to {topic}")]
