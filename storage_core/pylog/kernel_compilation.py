"""Compiling all kernels before they are needed: when a container image or an environment is made.

A process that finds a kernel compiled loads it in a fraction of a millisecond; one that does not
imports Numba and compiles, which takes seconds, and again in every process where no directory takes
what it made, as on a read-only disk.
"""

from __future__ import annotations

from pylog.kernels import (
    crc32c,
    decode_headers,
    decode_legacy,
    decode_records,
    decompress,
    encode_records,
    find_bytes,
    hash_record_keys,
    header_keys,
    key_tables,
    legacy_to_v2,
    murmur2,
    parse_lines,
    rebuild_batches,
    scan_batches,
    skip_headers,
    split_batch,
    write_lines,
)
from pylog.native.kernel import KeptCode, Kernel
from pylog.native.kernel_cache import LEVELS, this_level

_MODULES = (
    *(crc32c, decode_headers, decode_legacy, decode_records, decompress, encode_records),
    *(find_bytes, hash_record_keys, header_keys, key_tables, legacy_to_v2, murmur2),
    *(parse_lines, rebuild_batches, scan_batches, skip_headers, split_batch, write_lines),
)

KERNELS = tuple(
    kernel for module in _MODULES for kernel in vars(module).values() if isinstance(kernel, Kernel)
)
"""Every kernel there is."""


def compile_kernels(*, all_levels: bool = False) -> list[KeptCode]:
    """Compile all kernels and keep their machine code, but for those that are kept already.

    Where the code is kept, `pylog.native.kernel_cache` says: in the directory that the environment
    variable ``NUMBA_CACHE_DIR`` names if it is set, else beside the package or, where that cannot
    be written, in the user's cache directory. Whoever runs pylog later has to be told the same
    directory, and needs only to read it.

    Parameters
    ----------
    all_levels
        For every level of x86-64 and not only for this machine's: for an image that other machines
        run.

    Returns
    -------
    list of KeptCode
        One for each kernel and level.

    Raises
    ------
    PermissionError
        There is no directory that takes the code.
    NotImplementedError
        Neither on x86-64 nor on 64-bit ARM: there Numba keeps code by its own means, for one
        processor and one user, and it is of no use to compile ahead.

    Examples
    --------
    >>> kept = pylog.jobs.compile_kernels()
    >>> len({each.kernel for each in kept}) == len(kept)
    True
    """
    own = this_level()
    if own is None:
        msg = "kernels are compiled ahead on x86-64 and ARM only; elsewhere Numba keeps its own"
        raise NotImplementedError(msg)
    levels = LEVELS if all_levels and own in LEVELS else (own,)
    return [kernel.keep_code(level) for level in levels for kernel in KERNELS]
