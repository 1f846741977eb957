"""Every kind of difference between a broker's answers and those of `pylog.serve` is listed.

The same requests go to a broker and to a server on a copy of its directory. A difference that is
not in the list is a fault, and so is one in the list that is not found; each row of the list is one
of the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.server.messages import APIS
from tests.broker.answer_differences import CLOSED, ask, differences
from tests.broker.known_differences import KNOWN
from tests.broker.odd_requests import NOT_ASKED, all_requests
from tests.broker.served_cluster import TOPICS, commit, copy_beside, fill
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from tests.broker.conftest import NewBroker

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"
_HEADING = "## Answers that differ from a broker's"


@pytest.mark.broker
def test_every_kind_of_difference_is_in_the_list_and_found(
    new_broker: NewBroker, tmp_path: Path
) -> None:
    broker = new_broker()
    fill(broker, transactions=40)
    commit(broker)
    copy_beside(broker, tmp_path / "copy")
    asked, found = set(), set()
    with pylog.serve(tmp_path / "copy") as server:
        addresses = broker.bootstrap_servers, server.address
        clients = [RawClient(each) for each in addresses]
        topics = {"topics": [{"name": name} for name in TOPICS]}
        told = clients[0].ask("Metadata", 13, topics)["topics"]
        for api, version, request in all_requests({each["name"]: each["topicId"] for each in told}):
            answers = [ask(each, api, version, request) for each in clients]
            for difference in differences(api, *answers):
                kinds = {kind for kind in KNOWN if kind.is_of(difference)}
                assert kinds, (difference, version, request)
                found |= kinds
            for index, answer in enumerate(answers):
                if answer == CLOSED:
                    clients[index].close()
                    clients[index] = RawClient(addresses[index])
            asked.add(api)
        for each in clients:
            each.close()
    assert asked == APIS.keys() - NOT_ASKED
    assert set(KNOWN) - found == set()


def test_the_page_has_the_rows_of_the_list() -> None:
    section = PAGE.read_text(encoding="utf-8").partition(_HEADING)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \|", section, re.MULTILINE)
    assert set(rows) - {"answer", "---"} == {each.row for each in KNOWN}
