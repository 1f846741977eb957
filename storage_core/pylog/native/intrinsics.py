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
_PAIR = ir.VectorType(_WORD, 2)
_BYTES = ir.VectorType(ir.IntType(8), 32)


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
def prefetch(typing: Any, buf: Any, at: Any) -> Any:
    """Have the processor fetch the cache line of ``buf[at]``, inside or not: nothing is read."""
    signature = types.void(buf, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], *arguments)
        half = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), half, half, half])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(fetch, [address, half(0), half(3), half(1)])
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
def load_big_word(typing: Any, buf: Any, at: Any) -> Any:
    """Return the 8 bytes at ``buf[at]`` as an int64 whose lowest byte is the last."""
    return _load_big(buf, 64)


@intrinsic
def load_big_half(typing: Any, buf: Any, at: Any) -> Any:
    """Return the 4 bytes at ``buf[at]`` as a signed number whose lowest byte is the last."""
    return _load_big(buf, 32)


def _load_big(buf: Any, bits: int) -> Any:
    """Return the type and the code of a load, most significant byte first, widened to an int64."""
    signature = types.int64(buf, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], *arguments)
        value = builder.load(builder.bitcast(address, ir.IntType(bits).as_pointer()), align=1)
        ordered = builder.bswap(value) if _BYTE_ORDER_IS_LITTLE else value
        return ordered if bits == 64 else builder.sext(ordered, _WORD)

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
def match_bytes(typing: Any, buf: Any, at: Any, byte: Any, other_at: Any, other: Any) -> Any:
    """Return in which of 32 places ``buf[at:]`` is ``byte`` and ``buf[other_at:]`` is ``other``."""
    signature = types.int64(buf, types.int64, types.uint8, types.int64, types.uint8)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, start, byte, other_start, other = arguments

        def equal(at: Any, byte: Any) -> Any:
            address = _address(context, builder, signature.args[0], values, at)
            stored = builder.load(builder.bitcast(address, _BYTES.as_pointer()), align=1)
            index = ir.IntType(32)
            one = builder.insert_element(ir.Constant(_BYTES, ir.Undefined), byte, index(0))
            same = ir.Constant(ir.VectorType(index, 32), [0] * 32)
            wanted = builder.shuffle_vector(one, ir.Constant(_BYTES, ir.Undefined), same)
            return builder.icmp_unsigned("==", stored, wanted)

        both = builder.and_(equal(start, byte), equal(other_start, other))
        return builder.zext(builder.bitcast(both, ir.IntType(32)), _WORD)

    return signature, generate


@intrinsic
def lowest_bit(typing: Any, word: Any) -> Any:
    """Return the number of the lowest bit that is set in a word other than 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


@intrinsic
def add_words(typing: Any, left: Any, right: Any) -> Any:
    """Return the sum of two numbers modulo 2^64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.add(*arguments)

    return types.int64(types.int64, types.int64), generate


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


@intrinsic
def crc32c_byte(typing: Any, crc: Any, byte: Any) -> Any:
    """Return the state of a CRC-32C after one more byte."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        half, byte_type = ir.IntType(32), ir.IntType(8)
        kind = ir.FunctionType(half, [half, byte_type])
        add = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.32.8")
        state, byte = arguments
        after = builder.call(add, [builder.trunc(state, half), builder.trunc(byte, byte_type)])
        return builder.zext(after, _WORD)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def crc32c_word(typing: Any, crc: Any, word: Any) -> Any:
    """Return the state of a CRC-32C after 8 more bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_WORD, [_WORD, _WORD])
        add = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.64.64")
        return builder.call(add, arguments)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def multiply_without_carries(typing: Any, left: Any, right: Any) -> Any:
    """Return the lower half of the product of two polynomials of 64 bits each."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing = _PAIR([0, 0])
        pairs = [builder.insert_element(nothing, each, ir.IntType(32)(0)) for each in arguments]
        product = builder.call(_multiply(builder), [*pairs, ir.IntType(8)(0)])
        return builder.extract_element(product, ir.IntType(32)(0))

    return types.int64(types.int64, types.int64), generate


def _multiply(builder: Any) -> Any:
    """Return the instruction that multiplies a half of each of two pairs, without carries."""
    kind = ir.FunctionType(_PAIR, [_PAIR, _PAIR, ir.IntType(8)])
    return cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq")


# x^(n+32) and x^(n-32) modulo the polynomial, bits reflected: they move 16 bytes by n bits.
_FOLD_BY_1 = (0x01751997D0, 0x00CCAA009E)  # n = 128
_FOLD_BY_4 = (0x0154442BD4, 0x01C6E41596)  # n = 512


@intrinsic
def fold_crc32(typing: Any, buf: Any, start: Any, blocks: Any, crc: Any) -> Any:
    """Return 16 bytes, as two words, that have the CRC-32 of ``blocks`` of 16 bytes, and 0.

    There is at least one block. The state ``crc`` comes before them; that of the 16 bytes is 0.
    Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ" (2009).
    """
    signature = types.UniTuple(types.int64, 3)(buf, types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, start, blocks, crc = arguments
        multiply = _multiply(builder)

        def block(number: Any) -> Any:
            at = builder.add(start, builder.shl(number, _WORD(4)))
            address = _address(context, builder, signature.args[0], array, at)
            return builder.load(builder.bitcast(address, _PAIR.as_pointer()), align=1)

        def move(what: Any, by: tuple[int, int]) -> Any:
            low = builder.call(multiply, [what, _PAIR(by), ir.IntType(8)(0x00)])
            return builder.xor(low, builder.call(multiply, [what, _PAIR(by), ir.IntType(8)(0x11)]))

        index = ir.IntType(32)
        before = builder.insert_element(_PAIR([0, 0]), crc, index(0))
        folded = cgutils.alloca_once_value(builder, builder.xor(block(_WORD(0)), before))
        done = cgutils.alloca_once_value(builder, _WORD(1))
        with builder.if_then(builder.icmp_signed(">=", blocks, _WORD(8))):
            # Four chains, since one would wait for each multiplication before the next.
            chains = [folded]
            chains += [cgutils.alloca_once_value(builder, block(_WORD(i))) for i in (1, 2, 3)]
            fours = builder.and_(blocks, _WORD(-4))
            with cgutils.for_range_slice(builder, _WORD(4), fours, _WORD(4)) as (number, _):
                for i, chain in enumerate(chains):
                    moved = move(builder.load(chain), _FOLD_BY_4)
                    builder.store(builder.xor(moved, block(builder.add(number, _WORD(i)))), chain)
            for chain in chains[1:]:
                moved = move(builder.load(folded), _FOLD_BY_1)
                builder.store(builder.xor(moved, builder.load(chain)), folded)
            builder.store(fours, done)
        with cgutils.for_range_slice(builder, builder.load(done), blocks, _WORD(1)) as (number, _):
            moved = move(builder.load(folded), _FOLD_BY_1)
            builder.store(builder.xor(moved, block(number)), folded)
        words = [builder.extract_element(builder.load(folded), index(i)) for i in range(2)]
        return context.make_tuple(builder, signature.return_type, [*words, _WORD(0)])

    return signature, generate


@intrinsic
def address_of(typing: Any, buf: Any, at: Any) -> Any:
    """Return the address of ``buf[at]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], *arguments)
        return builder.ptrtoint(address, _WORD)

    return types.int64(buf, types.int64), generate


@intrinsic
def call_library(typing: Any, function: Any, words: Any) -> Any:
    """Call the C function at an address with five words; one that takes fewer sees no others."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = cgutils.unpack_tuple(builder, arguments[1], 5)
        kind = ir.FunctionType(_WORD, [_WORD] * 5)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), given)

    return types.int64(types.int64, types.UniTuple(types.int64, 5)), generate
