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
from pylog.files.checkpoint_file import read_text_file

if TYPE_CHECKING:
    import os

QUORUM_STATE = "quorum-state"


def read_quorum_voters(path: str | os.PathLike[str]) -> frozenset[int] | None:
    """Return the ids of the voters that a ``quorum-state`` file names."""
    try:
        content = json.loads(read_text_file(path))
    except SegmentVanishedError:
        return None
    except (ValueError, RecursionError) as error:
        reason = f"quorum state is not JSON: {error}"
        raise CorruptCheckpointError(reason, path) from error
    version = content.get("data_version") if isinstance(content, dict) else None
    if version == 1:
        return None
    if version != 0:
        reason = f"quorum state has data_version {version!r}, expected 0 or 1"
        raise CorruptCheckpointError(reason, path)
    try:
        voters = [each["voterId"] for each in content["currentVoters"] or ()]
    except (KeyError, TypeError) as error:
        reason = 'quorum state has no "currentVoters": [{"voterId": …}]'
        raise CorruptCheckpointError(reason, path) from error
    if not all(type(each) is int for each in voters):
        reason = f"quorum state names voters {voters!r}, expected whole numbers"
        raise CorruptCheckpointError(reason, path)
    return frozenset(voters) or None
