"""Where controllers listen, as users give it and as settings name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.internal_topics.metadata_image import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylog.reading.internal_logs import CommittedMetadata, Voter

_DEFAULT_LISTENER = "CONTROLLER"
_NOT_KNOWN = "HOST:PORT"


def known_endpoints(metadata: CommittedMetadata, voter_id: int) -> tuple[Endpoint, ...]:
    """Return where a voter listens by the log, or by its registration; () where neither says."""
    known = {each.voter_id: each.endpoints for each in metadata.voter_set}
    registered = metadata.image.controllers.get(voter_id)
    return known.get(voter_id) or (() if registered is None else registered.endpoints)


def given_endpoint(metadata: CommittedMetadata, voter_id: int, text: str) -> Endpoint:
    """Return an endpoint that was given as host:port, of the listener that controllers have."""
    own = known_endpoints(metadata, voter_id)
    listeners = [*own, *(one for each in metadata.voter_set for one in each.endpoints)]
    return _endpoint(listeners[0].name if listeners else _DEFAULT_LISTENER, text)


def _endpoint(name: str, text: str) -> Endpoint:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        msg = f"endpoint {text!r} is not of the form host:port"
        raise ValueError(msg)
    return Endpoint(name, host.removeprefix("[").removesuffix("]"), int(port))


def address_of(voter: Voter) -> str:
    """Return where the others reach a voter, as host:port."""
    if not voter.endpoints:
        return _NOT_KNOWN
    endpoint = voter.endpoints[0]
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def shown_voters(voters: Iterable[Voter]) -> str:
    """Return who votes, and where, for people."""
    return ", ".join(f"{each.voter_id} at {address_of(each)}" for each in voters)


def quorum_setting(metadata: CommittedMetadata, voters: Sequence[Voter]) -> str:
    """Return the line of ``server.properties`` that leads nodes to the voters."""
    if metadata.kraft_version:
        return f"controller.quorum.bootstrap.servers={','.join(map(address_of, voters))}"
    names = ",".join(f"{each.voter_id}@{address_of(each)}" for each in voters)
    return f"controller.quorum.voters={names}"
