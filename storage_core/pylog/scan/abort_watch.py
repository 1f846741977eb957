"""Whether what a reader has given as committed is aborted further on.

A ``.txnindex`` has no checksum, and one that was cut between two entries looks sound. What it lacks
shows when the ABORT marker comes by. Only where offsets have no gap in between: compaction takes
COMMIT markers away, and what was committed by one may stand before another transaction's ABORT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.errors import CorruptIndexError
from pylog.files.file_names import LOG_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX
from pylog.model import ControlRecordType
from pylog.record.batch_layout import TRANSACTIONAL_FLAG_MASK
from pylog.scan.control_batches import control_types

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.record.batch_scan import BatchScan

_END_TYPES = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


class AbortWatch:
    """Watches the batches that a task reads, in order; knows nothing of what is behind them."""

    def __init__(self) -> None:
        self._given: dict[int, int] = {}  # producer id to how many gaps there were before
        self._gaps = 0
        self._next_offset = 0

    def look(self, scan: BatchScan, wanted: npt.NDArray[np.bool_] | None, path: str) -> None:
        """Note the batches of a window.

        Parameters
        ----------
        scan
            The window.
        wanted
            Mask of the batches whose records are given; None for all.
        path
            The ``.log`` file.

        Raises
        ------
        CorruptIndexError
            Records of a transaction were given that turns out to be aborted.
        """
        headers = scan.headers
        follows = np.append(self._next_offset, headers.last_offsets[:-1] + 1)
        gaps = self._gaps + np.cumsum(headers.offsets != follows)
        self._gaps, self._next_offset = int(gaps[-1]), int(headers.last_offsets[-1]) + 1
        if not headers.traits.any_has(TRANSACTIONAL_FLAG_MASK):
            return
        which = np.flatnonzero(headers.is_transactional)
        control = headers.is_control[which]
        kinds = np.full(which.size, ControlRecordType.UNKNOWN, dtype=np.int64)
        kinds[control] = control_types(scan, which[control])
        given = ~control if wanted is None else ~control & wanted[which]
        rows = zip(
            headers.producer_ids[which].tolist(),
            headers.offsets[which].tolist(),
            kinds.tolist(),
            given.tolist(),
            gaps[which].tolist(),
            strict=True,
        )
        for producer_id, offset, kind, is_given, gaps_before in rows:
            if is_given:
                self._given[producer_id] = gaps_before
            elif kind == ControlRecordType.ABORT and self._given.get(producer_id) == gaps_before:
                reason = (
                    f"transaction index lacks the transaction of producer {producer_id} that is "
                    f"aborted at offset {offset}, and its records were taken for committed; read "
                    "from a copy without the index, then the markers decide"
                )
                raise CorruptIndexError(reason, _index_path(path))
            elif kind in _END_TYPES:
                self._given.pop(producer_id, None)


def _index_path(log_path: str) -> str:
    return log_path.replace(LOG_FILE_SUFFIX, TXN_INDEX_FILE_SUFFIX)
