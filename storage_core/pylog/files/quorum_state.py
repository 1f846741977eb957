"""``quorum-state``: what a KRaft node remembers of elections, beside the log of the metadata.

One JSON object. Version 0, of quorums whose voters ``controller.quorum.voters`` names::

    {"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,
     "currentVoters":[{"voterId":1}],"data_version":0}

Version 1 has no voters, since records of the log name them then (KIP-853)::

    {"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",
     "data_version":1}

Source: FileQuorumStateStore, QuorumStateData (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.checkpoint_file import read_text_file, split_lines
from pylog.files.partition_metadata import parse_uuid

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

QUORUM_STATE = "quorum-state"

_NUMBERS = {"leaderId": 32, "leaderEpoch": 32, "votedId": 32, "appliedOffset": 64}
_FIELDS = {
    0: ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters"),
    1: ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId"),
}
"""The fields that a file of each version must have."""
_BLANKS = " \t\r\n"
_HIGHEST_EPOCH = 2**31 - 1
_NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


def _ensure_values(content: dict[str, object], version: int, path: str | os.PathLike[str]) -> None:
    """Raise unless the fields have values that a node can read.

    Source: QuorumStateDataJsonConverter (generated), ElectionState (Kafka 4.4).
    """
    missing = [name for name in _FIELDS[version] if name not in content]
    if missing:
        reason = f"quorum state of version {version} has no {', '.join(missing)}"
        raise CorruptCheckpointError(reason, path)
    for name in _FIELDS[version]:
        value, bits = content[name], _NUMBERS.get(name)
        if bits is not None and not _fits(value, bits):
            reason = f"quorum state has {name} {value!r}, expected a whole number of {bits} bits"
            raise CorruptCheckpointError(reason, path)
    if content["leaderEpoch"] == _HIGHEST_EPOCH:
        reason = f"quorum state has leaderEpoch {_HIGHEST_EPOCH}, after which there is none"
        raise CorruptCheckpointError(reason, path)
    if version == 1:
        directory_id = content["votedDirectoryId"]
        try:
            parse_uuid(directory_id if isinstance(directory_id, str) else "")
        except ValueError as error:
            reason = f"quorum state has votedDirectoryId {directory_id!r}, expected a UUID"
            raise CorruptCheckpointError(reason, path) from error


def _fits(value: object, bits: int) -> bool:
    return type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


class QuorumState(NamedTuple):
    """What a ``quorum-state`` file says."""

    leader_id: int  # -1 where none is known
    leader_epoch: int
    voters: frozenset[int] | None  # None where records of the log name them


def read_quorum_state(path: str | os.PathLike[str]) -> QuorumState | None:
    """Return what a ``quorum-state`` file says; None if there is none.

    As a node, it reads one JSON value from the first line, and ignores what follows that.
    """
    try:
        lines = split_lines(read_text_file(path))
        content, _ = json.JSONDecoder().raw_decode(lines[0].lstrip(_BLANKS) if lines else "")
    except SegmentVanishedError:
        return None
    except (ValueError, RecursionError) as error:
        reason = f"quorum state is not JSON: {error}"
        raise CorruptCheckpointError(reason, path) from error
    stored = content.get("data_version") if isinstance(content, dict) else None
    # A node takes the whole part of a number.
    version = -1
    if isinstance(stored, int | float) and not isinstance(stored, bool) and 0 <= stored < 2:
        version = int(stored)
    if version not in _FIELDS:
        reason = f"quorum state has data_version {stored!r}, expected 0 or 1"
        raise CorruptCheckpointError(reason, path)
    _ensure_values(content, version, path)
    leader = content["leaderId"], content["leaderEpoch"]
    if version == 1:
        return QuorumState(*leader, None)
    try:
        voters = [each["voterId"] for each in content["currentVoters"] or ()]
    except (KeyError, TypeError) as error:
        reason = 'quorum state has no "currentVoters": [{"voterId": …}]'
        raise CorruptCheckpointError(reason, path) from error
    if not all(type(each) is int for each in voters):
        reason = f"quorum state names voters {voters!r}, expected whole numbers"
        raise CorruptCheckpointError(reason, path)
    return QuorumState(*leader, frozenset(voters) or None)


def quorum_state_without_leader(leader_epoch: int, voters: Iterable[int] | None) -> bytes:
    """Return a file that says: no leader is known in an epoch, and no vote is given in it.

    ``voters`` are named by version 0; None for version 1.
    """
    content: dict[str, object] = {"leaderId": -1, "leaderEpoch": leader_epoch, "votedId": -1}
    if voters is None:
        content |= {"votedDirectoryId": _NO_DIRECTORY, "data_version": 1}
    else:
        listed = [{"voterId": each} for each in sorted(voters)]
        content |= {"appliedOffset": 0, "currentVoters": listed, "data_version": 0}
        content = {"clusterId": "", **content}
    return json.dumps(content, separators=(",", ":")).encode()
