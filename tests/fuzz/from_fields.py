"""v2 batches of fields that a fuzzer chooses: most changes of its bytes make a sound batch."""

from __future__ import annotations

from tests.support.batches import batch_v2_of, record_v2, wrap
from tests.support.codecs import CODECS, compress

# Around the lengths at which varints, and the kernels' fast form, change.
_LENGTHS = (0, 1, 7, 8, 62, 63, 64, 65, 200, 8_180, 8_191, 8_192)
_NULL = 0xFF


class Supply:
    """Numbers and bytes from the head of an input; zeros once it is used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken.ljust(count, b"\0")

    def byte(self) -> int:
        return self.take(1)[0]

    def integer(self, bits: int) -> int:
        """Return a signed number of up to so many bits; a byte says of how many bytes it is."""
        widths = (1, 2, 3, 4, 8)
        width = widths[self.byte() % len(widths)]
        return wrap(int.from_bytes(self.take(width), signed=True), bits)

    def content(self) -> bytes | None:
        kind = self.byte()
        if kind == _NULL:
            return None
        if kind >= 0x80:
            return bytes([kind]) * _LENGTHS[kind % len(_LENGTHS)]
        return self.take(kind % 16)


def batch_from_fields(supply: Supply) -> bytes:
    """Return a batch with a right checksum, whose records are as many as it counts, or nearly."""
    attributes = supply.byte()
    records = [_record(supply) for _ in range(supply.byte() % 5)]
    payload = b"".join(records)
    codec = attributes & 0x07
    more = supply.byte()
    return batch_v2_of(
        compress(CODECS[codec], payload) if codec < len(CODECS) else payload,
        base_offset=supply.integer(62),
        last_offset_delta=supply.integer(32),
        record_count=len(records) + (more if more in {1, 2} else 0),
        attributes=attributes,
        base_timestamp=supply.integer(64),
        max_timestamp=supply.integer(64),
        producer_id=supply.integer(64),
        base_sequence=supply.integer(32),
    )


def _record(supply: Supply) -> bytes:
    headers = [
        (supply.content() or b"", supply.content()) for _ in range(max(0, supply.byte() % 8 - 4))
    ]
    return record_v2(
        supply.integer(64), supply.integer(32), supply.content(), supply.content(), headers
    )
