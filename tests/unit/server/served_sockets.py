"""A server over a socket, and what comes over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from pylog.results import BrokerServer

CASE = "4.3.0/txn"


def _still_answers(server: BrokerServer) -> None:
    with RawClient(server.address) as client:
        assert client.ask("Metadata", 13, {"topics": None})["topics"]
