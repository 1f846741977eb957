"""`quorum-state` as a node reads it at its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files.quorum_state import quorum_state_without_leader
from tests.support.metadata_log import METADATA
from tests.unit.writing.nodes import found, node_directory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return node_directory(tmp_path)


QUORUM_STATE = (
    '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    '"data_version":1}'
)


@pytest.mark.parametrize(
    ("content", "is_read"),
    [
        (QUORUM_STATE, True),
        (QUORUM_STATE + "\n\0\0", True),  # a node reads one value from the first line
        (QUORUM_STATE + "\0\0", True),
        ("\n" + QUORUM_STATE, False),
        ("", False),
        ("\0" * 60, False),
        (QUORUM_STATE[:40], False),
        (QUORUM_STATE.replace('"leaderEpoch":1,', ""), False),
        (QUORUM_STATE.replace(":1}", ":0}"), False),
        (QUORUM_STATE.replace(":1}", ":2}"), False),
        (QUORUM_STATE.replace(":1}", ":[]}"), False),
    ],
)
def test_a_node_does_not_start_on_a_quorum_state_that_it_cannot_read(
    logs: Path, content: str, *, is_read: bool
) -> None:
    (logs / METADATA / "quorum-state").write_text(content)
    expected = [] if is_read else [("unusable_metadata", f"{METADATA}/quorum-state")]
    assert found(logs) == expected
    assert bool(pylog.doctor(logs).refusals) != is_read


def test_a_file_without_a_leader_has_the_fields_that_kafka_writes() -> None:
    """As brokers of 3.9 and 4.4 wrote it, but for the ids."""
    assert quorum_state_without_leader(8, [3, 1]) == (
        b'{"clusterId":"","leaderId":-1,"leaderEpoch":8,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":3}],"data_version":0}'
    )
    assert quorum_state_without_leader(8, None) == (
        b'{"leaderId":-1,"leaderEpoch":8,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        b'"data_version":1}'
    )
