"""What doctor says of states of a node that nobody has listed is what a broker and consumers do."""

from __future__ import annotations

import pytest

from tests.broker.conftest import BROKER_VERSIONS
from tests.broker.start_states import STATES, Node, complaints, state

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module", params=BROKER_VERSIONS)
def node(
    request: pytest.FixtureRequest, kafka_is_here: None, tmp_path_factory: pytest.TempPathFactory
) -> Node:
    return Node(tmp_path_factory.mktemp("states"), request.param)


@pytest.mark.thorough(one_in=60)
@pytest.mark.parametrize("number", range(STATES))
def test_a_state_is_what_was_said_of_it(node: Node, number: int) -> None:
    wanted = state(node.version, number)
    disks, harms = node.harmed(wanted)
    wanted = wanted._replace(partitions=harms)
    report = node.foretold(disks)
    started = node.start(disks)
    wrong = complaints(node, report, started, disks)
    assert wrong == [], f"{wanted.text}\n{started.log[-1500:] if not started.is_up else ''}"
