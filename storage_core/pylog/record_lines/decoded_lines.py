"""Records of internal topics as the lines that Kafka's formatters print, or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import InvalidRecordError, UndecodableValueError
from pylog.internal_topics.decoders import dump_decoder
from pylog.text.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pylog.internal_topics.decoders import DecoderName

DECODED_COLUMNS = ("topic", "partition", "offset", "key", "value")


def decoded_lines(
    batch: pa.RecordBatch,
    name: DecoderName,
    *,
    is_printable: bool,
    left_out: list[UndecodableValueError] | None,
) -> Iterator[memoryview]:
    """Yield a line for each record: what its decoder makes of the key, a tab, and of the value.

    The formatters of MirrorMaker 2 make one text of both. A record that the decoder does not
    understand is left out; without a list for such, it is an error, after the lines before it.
    """
    decoder = dump_decoder(name)
    for topic, partition, offset, key, value in zip(
        *(batch.column(each).to_pylist() for each in DECODED_COLUMNS), strict=True
    ):
        try:
            texts = decoder.decode(key, value, offset)
        except InvalidRecordError as error:
            undecodable = UndecodableValueError(error.reason, f"{topic}-{partition}", offset)
            if left_out is None:
                raise undecodable from error
            left_out.append(undecodable)
            continue
        line = "\t".join(each for each in texts if each is not None)
        shown = printable(line) if is_printable else line
        yield memoryview(f"{shown}\n".encode("utf-8", "replace"))
