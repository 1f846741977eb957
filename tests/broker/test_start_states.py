"""What doctor says of states of nodes that nobody has listed is what brokers and consumers do."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.broker.conftest import OLDER_VERSIONS
from tests.broker.start_complaints import complaints, unserved
from tests.broker.start_states import KINDS, Kind, Node, state
from tests.support.kafka_broker_jars import NEWEST_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.broker


class Nodes(NamedTuple):
    """A version, and a kind of nodes of it."""

    version: str
    kind: Kind


def _states() -> Iterator[object]:
    for kind in KINDS:
        for version in (NEWEST_VERSION, *OLDER_VERSIONS):
            marks = [pytest.mark.thorough] if version != NEWEST_VERSION else []
            if kind.user is not None:
                only_root = "only root can be another user"
                marks.append(pytest.mark.skipif(os.geteuid() != 0, reason=only_root))
            for number in range(kind.states):
                name = f"{version} {kind.name}-{number}"
                yield pytest.param(Nodes(version, kind), number, id=name, marks=marks)


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest, kafka_is_here: None) -> Iterator[Node]:
    wanted: Nodes = request.param
    with tempfile.TemporaryDirectory(prefix="pylog-states-") as name:
        Path(name).chmod(0o755)  # for the broker's user
        yield Node(Path(name), *wanted)


@pytest.mark.thorough(one_in=61, of_all=3)
@pytest.mark.parametrize(("node", "number"), list(_states()), indirect=["node"])
def test_a_state_is_what_was_said_of_it(node: Node, number: int) -> None:
    wanted = state(node.version, number, node.kind)
    disks, harms = node.harmed(wanted)
    wanted = wanted._replace(partitions=harms)
    report = node.foretold(disks)
    is_to_end = report.verdict.would_start is False
    started = node.start(disks, unserved(report), is_to_end=is_to_end)
    wrong = complaints(node, report, started, disks)
    assert wrong == [], f"{wanted.text}\n{started.log[-1500:] if not started.is_up else ''}"
