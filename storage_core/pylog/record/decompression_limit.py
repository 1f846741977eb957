"""The one limit on what a batch of records may take: its size, decompressed.

A few kilobytes can decompress to gigabytes, so whoever decompresses stops at a limit. A batch that
was never compressed needs its size in memory just as well, so the limit is for it, too.
"""

from __future__ import annotations

DEFAULT_MAX_DECOMPRESSED_BYTES = 256 << 20
"""Most bytes one batch may have, decompressed, unless the caller says otherwise (256 MiB)."""


RAISE_THE_OPTION = (
    "; if the batch is to be trusted, raise max_decompressed_bytes (in Spark maxDecompressedBytes, "
    "on the command line --max-decompressed-bytes)"
)
SEND_LESS = "; send smaller batches"


_NOT_SHRUNK_BYTES = 1 << 16


def is_surely_over(size_bytes: int, limit: int) -> bool:
    """Whether a batch of that size in its file is over the limit, whatever its codec.

    Codecs make a little more of what they cannot shrink.
    """
    return size_bytes > limit + limit // 8 + _NOT_SHRUNK_BYTES


def over_limit(what: str, limit: int, advice: str = RAISE_THE_OPTION) -> str:
    """Return the text for a batch that exceeds ``limit`` bytes.

    Parameters
    ----------
    what
        What exceeds it, and how far it got.
    limit
        What it may have.
    advice
        What can be done, with the punctuation before it.
    """
    return f"{what}, more than the limit of {limit} bytes{advice}"
