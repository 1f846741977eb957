"""Where controllers listen: by the log, by their registration, or as users give it."""

from __future__ import annotations

import uuid

import pytest

from pylog.internal_topics.metadata_image import Endpoint, MetadataImage, NodeRegistration
from pylog.reading.internal_logs import CommittedMetadata, Voter
from pylog.recovery.voter_addresses import (
    address_of,
    given_endpoint,
    known_endpoints,
    quorum_setting,
    shown_voters,
)

OWN = Endpoint("CTRL", "one", 9093)
REGISTERED = Endpoint("OTHER", "two", 9094)


def voter(number: int, *endpoints: Endpoint) -> Voter:
    return Voter(number, uuid.UUID(int=number), endpoints)


def metadata(*voters: Voter, kraft_version: int = 1) -> CommittedMetadata:
    """Return metadata in which node 2 has registered as a controller."""
    image = MetadataImage()
    image.controllers[2] = NodeRegistration(2, (REGISTERED,), {})
    none: frozenset[int] = frozenset()
    return CommittedMetadata("", image, 0, 0, frozenset(), frozenset(), none, voters, kraft_version)


def test_the_log_tells_first_and_then_the_registration() -> None:
    found = metadata(voter(1, OWN), voter(2))
    assert known_endpoints(found, 1) == (OWN,)
    assert known_endpoints(found, 2) == (REGISTERED,)
    assert known_endpoints(found, 3) == ()


@pytest.mark.parametrize(
    ("node", "name"),
    [(1, "CTRL"), (2, "OTHER"), (3, "CTRL")],
)
def test_a_given_address_is_of_the_listener_that_controllers_have(node: int, name: str) -> None:
    found = given_endpoint(metadata(voter(1, OWN), voter(3)), node, "host:1")
    assert found == Endpoint(name, "host", 1)
    assert given_endpoint(metadata(), 1, "host:1").name == "CONTROLLER"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("h:1", "h", 1),
        ("h:65535", "h", 65535),
        ("[::1]:9093", "::1", 9093),
        ("10.0.0.1:9", "10.0.0.1", 9),
    ],
)
def test_an_address_has_a_host_and_a_port(text: str, host: str, port: int) -> None:
    found = given_endpoint(metadata(), 1, text)
    assert (found.host, found.port) == (host, port)
    assert address_of(voter(1, found)) == text


@pytest.mark.parametrize("text", ["", "h", "h:", ":1", "h:0", "h:65536", "h:-1", "h:x", "h:\u0661"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not of the form host:port"):
        given_endpoint(metadata(), 1, text)


def test_the_setting_is_that_of_a_dynamic_or_of_a_static_quorum() -> None:
    voters = [voter(1, OWN), voter(2)]
    assert shown_voters(voters) == "1 at one:9093, 2 at HOST:PORT"
    assert quorum_setting(metadata(), voters) == (
        "controller.quorum.bootstrap.servers=one:9093,HOST:PORT"
    )
    assert quorum_setting(metadata(kraft_version=0), voters) == (
        "controller.quorum.voters=1@one:9093,2@HOST:PORT"
    )
