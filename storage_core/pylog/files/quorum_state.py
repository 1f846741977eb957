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
from typing import TYPE_CHECKING

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.checkpoint_file import read_text_file, split_lines

if TYPE_CHECKING:
    import os

QUORUM_STATE = "quorum-state"

_FIELDS = {
    0: ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters"),
    1: ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId"),
}
"""What must be there, by version."""


def read_quorum_voters(path: str | os.PathLike[str]) -> frozenset[int] | None:
    """Return the ids of the voters that a ``quorum-state`` file names.

    As a node, it reads one JSON value from the first line, and ignores what follows that.
    """
    try:
        lines = split_lines(read_text_file(path))
        content, _ = json.JSONDecoder().raw_decode(lines[0] if lines else "")
    except SegmentVanishedError:
        return None
    except (ValueError, RecursionError) as error:
        reason = f"quorum state is not JSON: {error}"
        raise CorruptCheckpointError(reason, path) from error
    version = content.get("data_version") if isinstance(content, dict) else None
    if type(version) is not int or version not in _FIELDS:
        reason = f"quorum state has data_version {version!r}, expected 0 or 1"
        raise CorruptCheckpointError(reason, path)
    missing = [name for name in _FIELDS[version] if name not in content]
    if missing:
        reason = f"quorum state of version {version} has no {', '.join(missing)}"
        raise CorruptCheckpointError(reason, path)
    if version == 1:
        return None
    try:
        voters = [each["voterId"] for each in content["currentVoters"] or ()]
    except (KeyError, TypeError) as error:
        reason = 'quorum state has no "currentVoters": [{"voterId": …}]'
        raise CorruptCheckpointError(reason, path) from error
    if not all(type(each) is int for each in voters):
        reason = f"quorum state names voters {voters!r}, expected whole numbers"
        raise CorruptCheckpointError(reason, path)
    return frozenset(voters) or None
