"""What kernels do that Python has no words for, as LLVM instructions.

Each stands in the place of a helper that does the same in Python (see `pylog.native.kernel`), and
takes the same arguments. None checks its indexes.
"""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_BYTE_ORDER_IS_LITTLE = sys.byteorder == "little"
_WORD = ir.IntType(64)


def _address(context: Any, builder: Any, kind: Any, values: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, values).data, [at])


@intrinsic
def copy_bytes(typing: Any, dst: Any, dst_at: Any, src: Any, src_at: Any, count: Any) -> Any:
    """``dst[dst_at:dst_at + count] = src[src_at:src_at + count]``, as one memcpy."""
    signature = types.void(dst, types.int64, src, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        dst_value, dst_offset, src_value, src_offset, length = arguments
        to = _address(context, builder, signature.args[0], dst_value, dst_offset)
        source = _address(context, builder, signature.args[2], src_value, src_offset)
        cgutils.raw_memcpy(builder, to, source, length, 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def load_word(typing: Any, buf: Any, at: Any) -> Any:
    """Return the 8 bytes at ``buf[at]`` as an int64 whose lowest byte is the first."""
    signature = types.int64(buf, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], *arguments)
        word = builder.load(builder.bitcast(address, _WORD.as_pointer()), align=1)
        return word if _BYTE_ORDER_IS_LITTLE else builder.bswap(word)

    return signature, generate


@intrinsic
def store_word(typing: Any, buf: Any, at: Any, word: Any) -> Any:
    """Write ``word`` to the 8 bytes at ``buf[at]``, its lowest byte first."""
    signature = types.void(buf, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, offset, value = arguments
        address = _address(context, builder, signature.args[0], values, offset)
        ordered = value if _BYTE_ORDER_IS_LITTLE else builder.bswap(value)
        builder.store(ordered, builder.bitcast(address, _WORD.as_pointer()), align=1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def read_file(typing: Any, descriptor: Any, buf: Any, at: Any, count: Any, position: Any) -> Any:
    """Read ``count`` bytes at ``position`` into ``buf[at:]``; return how many came, or -1."""
    signature = types.int64(types.int64, buf, types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, values, offset, size, start = arguments
        address = _address(context, builder, signature.args[1], values, offset)
        # ssize_t pread(int, void *, size_t, off_t)
        kind = ir.FunctionType(_WORD, [ir.IntType(32), ir.IntType(8).as_pointer(), _WORD, _WORD])
        pread = cgutils.get_or_insert_function(builder.module, kind, "pread")
        return builder.call(pread, [builder.trunc(number, ir.IntType(32)), address, size, start])

    return signature, generate
