"""What every format has in common: payloads of one schema go in, an Arrow column comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class Payloads(NamedTuple):
    """Values of one schema, without their prefixes, in the bytes that they are part of.

    Attributes
    ----------
    data
        The bytes, read-only: as a rule those of a whole column, prefixes included.
    starts, ends
        Where each payload starts and ends (exclusive), in order; ``0 <= start <= end``, and no end
        is after the data.
    """

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Return how many payloads there are."""
        return int(self.starts.size)


class Decoded(NamedTuple):
    """What a decoder makes of payloads.

    Attributes
    ----------
    values
        A value of the decoder's type for each payload, null where it cannot be decoded.
    failures
        Why not, by the payload's place: a sentence without a stop, with the path into the value.
    """

    values: pa.Array
    failures: dict[int, str]


class DecodedTooLargeError(Exception):
    """Payloads decode to more than one call may hold: fewer of them might not."""


class Decoder(Protocol):
    """Decodes the payloads of one writer's schema. One thread."""

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""

    def decode(self, payloads: Payloads) -> Decoded:
        """Return a value for each payload; damage in one does not touch the others.

        Raises
        ------
        DecodedTooLargeError
            They decode to too many bytes; nothing is wrong with them, as far as is known.
        """
