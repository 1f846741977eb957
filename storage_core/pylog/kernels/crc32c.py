"""Kernel: checksums of many batches at once, by the processor's instruction for CRC-32C.

`pylog.native.checksum` takes one stretch of bytes a call, and keeps the interpreter's lock for
those of an ordinary batch. Here one call does all batches of a window, without the lock. It is
meant for machines that have the instructions: elsewhere it is right, and slow.

The instruction takes 8 bytes and has to wait for the one before it three times as long as it takes,
so three neighbouring *lanes* are summed side by side, the second and third from a state of 0. To
put states one after the other is to multiply the earlier one by a power of x.
Source: V. Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction" (2011).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pylog.kernels import helper, intrinsic, kernel
from pylog.kernels.helpers import load_word

CRC32C_POLYNOMIAL = 0x82F63B78

_UNIT = 128
"""Lanes are as many units of bytes long as three of them fit in what is left."""
_MOST_UNITS = 32


def _times_x(value: int) -> int:
    return (value >> 1) ^ (CRC32C_POLYNOMIAL if value & 1 else 0)


def _product(left: int, right: int) -> int:
    product = 0
    for power in range(31, -1, -1):  # bits are reflected: the highest is the coefficient of 1
        if left >> power & 1:
            product ^= right
        right = _times_x(right)
    return product


def _powers() -> npt.NDArray[np.int64]:
    """Return the factors that move a state by 0, 1, 2 … units; the first is unused."""
    power = 1 << 31
    for _ in range(8 * _UNIT - 33):
        power = _times_x(power)
    powers = [0, power]
    unit = power
    for _ in range(33):
        unit = _times_x(unit)
    while len(powers) <= 2 * _MOST_UNITS:
        powers.append(_product(powers[-1], unit))
    return np.array(powers, dtype=np.int64)


_POWERS = _powers()


@intrinsic({"x86-64-v3": "x86_crc32c_byte", "aarch64-crc": "arm_crc32c_byte"})
def _add_byte(crc: int, byte: int) -> int:
    """Return the state after one more byte."""
    crc ^= byte
    for _ in range(8):
        crc = (crc >> 1) ^ (CRC32C_POLYNOMIAL if crc & 1 else 0)
    return crc


@intrinsic({"x86-64-v3": "x86_crc32c_word", "aarch64-crc": "arm_crc32c_word"})
def _add_word(crc: int, word: int) -> int:
    """Return the state after 8 more bytes."""
    for i in range(8):
        crc = _add_byte(crc, (word >> (8 * i)) & 0xFF)
    return crc


@intrinsic(
    {"x86-64-v3": "x86_multiply_without_carries", "aarch64-crc": "arm_multiply_without_carries"}
)
def _multiply(left: int, right: int) -> int:
    """Return the product of two polynomials of 32 bits each."""
    product = np.int64(0)
    for i in range(32):
        if left >> i & 1:
            product ^= right << i
    return product


@helper
def _crc32c(buf: npt.NDArray[np.uint8], at: int, end: int) -> int:
    crc = np.int64(0xFFFFFFFF)
    while end - at >= 3 * _UNIT:
        units = min((end - at) // (3 * _UNIT), _MOST_UNITS)
        lane = units * _UNIT
        second = np.int64(0)
        third = np.int64(0)
        for i in range(at, at + lane, 8):
            crc = _add_word(crc, load_word(buf, i))
            second = _add_word(second, load_word(buf, i + lane))
            third = _add_word(third, load_word(buf, i + 2 * lane))
        zero = np.int64(0)
        crc = _add_word(zero, _multiply(crc, _POWERS[2 * units]))
        crc ^= _add_word(zero, _multiply(second, _POWERS[units])) ^ third
        at += 3 * lane
    while end - at >= 8:
        crc = _add_word(crc, load_word(buf, at))
        at += 8
    while at < end:
        crc = _add_byte(crc, np.int64(buf[at]))
        at += 1
    return crc ^ np.int64(0xFFFFFFFF)


@kernel()
def find_bad_crc32c(
    buf: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    stored: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Return the index of the first stretch whose CRC-32C is not the one stored, and what it is."""
    for i in range(starts.size):
        computed = _crc32c(buf, starts[i], ends[i])
        if computed != stored[i]:
            return i, computed
    return -1, 0
