"""The checksums that messages of v0 and v1 store, those in wrappers included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.record.batch_scan import find_batches

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.columnar.decode import DecodedGroup

_NONE = np.zeros(0, dtype=np.int64)


def stored_checks(group: DecodedGroup, is_valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the checksum of each record of a group, -1 - it where it is wrong; none for v2.

    Parameters
    ----------
    group
        Of one format family, all records of its batches. Messages in wrappers have right
        checksums, or the group would not have been decoded.
    is_valid
        Whether the checksum of each batch is right.
    """
    headers = group.headers
    if headers.traits.all_v2:
        return _NONE
    crcs = np.where(is_valid, headers.crcs, -1 - headers.crcs)
    codec_ids = headers.codec_ids
    if not codec_ids.any():
        return crcs
    parts = [
        crcs[index : index + 1] if codec_id == 0 else _inner_crcs(group, index)
        for index, codec_id in enumerate(codec_ids.tolist())
    ]
    return np.concatenate(parts)


def _inner_crcs(group: DecodedGroup, index: int) -> npt.NDArray[np.int64]:
    start, end = group.bounds[index].tolist()
    return find_batches(group.buffer[start:end]).headers.crcs
