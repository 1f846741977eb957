"""The records of compressed batches, decompressed one batch after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.columnar.group_request import BATCH_END, BATCH_START
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.record.batch_header import codec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from pylog.columnar.group_decoder import GroupDecoder
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.compression import Decompressor
    from pylog.record.window import Window


def decompressed_batches(
    window: Window,
    run: BatchHeaders,
    table: npt.NDArray[np.int64],
    decoder: GroupDecoder,
    decompressor: Decompressor,
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the place of each batch in ``run``, and where its records are, ``[start, end)``.

    They are appended to the decompressor's buffer, also those of batches without a codec. The
    caller may clear the buffer between two batches.
    """
    data = window.buffer.data
    bounds = table[:, BATCH_START : BATCH_END + 1].tolist()
    batches = zip(run.codec_ids.tolist(), run.magics.tolist(), bounds, strict=True)
    for index, (codec_id, magic, (start, end)) in enumerate(batches):
        try:
            codec = codec_of(codec_id, magic)
            stream = decoder.stream_of(data[start:end], codec, magic)
            placed = decompressor.append(codec, stream, magic)
        except (CorruptRecordError, InvalidRecordError) as error:
            position = window.file_position + int(run.positions[index])
            raise type(error)(error.reason, window.path, position) from error
        yield index, placed
