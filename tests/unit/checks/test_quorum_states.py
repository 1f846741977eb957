"""Whom controllers take for their leader, and who does not know: `pylog.checks.quorum_states`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.log_files import mark_clean_shutdown
from tests.support.metadata_log import METADATA, topic_record, write_metadata_log

if TYPE_CHECKING:
    from pathlib import Path


def write_state(node: Path, leader: int, epoch: int) -> None:
    state = {
        "clusterId": "",
        "leaderId": leader,
        "leaderEpoch": epoch,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": each} for each in (1, 2, 3)],
        "data_version": 0,
    }
    (node / METADATA / "quorum-state").write_text(json.dumps(state))


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    """Give three controllers, of which the first leads in epoch 3, as they all know."""
    found = [tmp_path / f"n{number}" for number in (1, 2, 3)]
    for number, node in enumerate(found, start=1):
        write_metadata_log(node, [topic_record("orders")], voters=(1, 2, 3))
        properties = f"version=1\nnode.id={number}\ncluster.id=c\n"
        (node / "meta.properties").write_text(properties)
        mark_clean_shutdown(node)
        write_state(node, 1, 3)
    return found


def forgotten(nodes: list[Path]) -> list[tuple[str, bool | None]]:
    report = pylog.doctor(*nodes)
    found = [each for each in report.findings if each.code == "forgotten_leader"]
    return [(each.path, report.verdict.would_start) for each in found]


def test_controllers_that_agree_are_none(nodes: list[Path]) -> None:
    assert forgotten(nodes) == []


def test_a_leader_without_its_file_may_end(nodes: list[Path]) -> None:
    (nodes[0] / METADATA / "quorum-state").unlink()
    assert forgotten(nodes) == [(str(nodes[0]), None)]


@pytest.mark.parametrize(
    ("leader", "epoch", "place"), [(2, 2, 0), (-1, 3, 0), (2, 4, 1), (1, 4, None)]
)
def test_a_node_that_does_not_know_that_it_leads_may_end(
    nodes: list[Path], leader: int, epoch: int, place: int | None
) -> None:
    write_state(nodes[0], leader, epoch)
    paths = [] if place is None else [str(nodes[place])]
    assert [path for path, _ in forgotten(nodes)] == paths


def test_another_node_without_its_file_is_told(nodes: list[Path]) -> None:
    (nodes[1] / METADATA / "quorum-state").unlink()
    assert forgotten(nodes) == []
