"""What the decoder is given: batches in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pylog.record.batch_scan import BatchHeaders


@dataclass(frozen=True, slots=True)
class Window:
    """Whole batches in memory, and where they lie in their file.

    Attributes
    ----------
    buffer
        uint8, read-only; ``headers.positions`` index it.
    headers
        The batches to be decoded, in order; their checksums have been verified.
    path
        The ``.log`` file.
    file_position
        Byte of the file that ``buffer[0]`` is.
    """

    buffer: npt.NDArray[np.uint8]
    headers: BatchHeaders
    path: str
    file_position: int
