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
def leading_zeros(typing: Any, word: Any) -> Any:
    """Return how many of a word's highest bits are not set; the word is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


@intrinsic
def multiply_words(typing: Any, left: Any, right: Any) -> Any:
    """Return the upper and the lower half of the product of two unsigned numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = ir.IntType(128)
        product = builder.mul(*(builder.zext(each, double) for each in arguments))
        upper = builder.trunc(builder.lshr(product, double(64)), _WORD)
        return context.make_tuple(
            builder, signature.return_type, [upper, builder.trunc(product, _WORD)]
        )

    return types.UniTuple(types.int64, 2)(types.int64, types.int64), generate


def _eight_bits(value: int, count: int) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(8), count), [value] * count)


def _mask_of(count: int, find: Any) -> Any:
    """Return the code of an intrinsic: a bit for each of ``count`` bytes that ``find`` marks."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], *arguments)
        kind = ir.VectorType(ir.IntType(8), count)
        found = find(builder, builder.load(builder.bitcast(address, kind.as_pointer()), align=1))
        return builder.zext(builder.bitcast(found, ir.IntType(count)), _WORD)

    return generate


@intrinsic
def string_stops(typing: Any, buf: Any, at: Any) -> Any:
    """Return which of 32 bytes are none of a JSON string's plain characters of ASCII."""

    def find(builder: Any, stored: Any) -> Any:
        marks = [builder.icmp_unsigned("==", stored, _eight_bits(each, 32)) for each in b'"\\']
        # Signed, so that bytes from 0x80 on are below, too.
        control = builder.icmp_signed("<", stored, _eight_bits(0x20, 32))
        return builder.or_(builder.or_(*marks), control)

    return types.int64(buf, types.int64), _mask_of(32, find)


@intrinsic
def copy_plain(typing: Any, dst: Any, dst_at: Any, src: Any, src_at: Any) -> Any:
    """Copy 32 bytes; return which are none of a JSON string's plain characters of ASCII."""
    signature = types.int64(dst, types.int64, src, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = _address(context, builder, signature.args[0], *arguments[:2])
        source = _address(context, builder, signature.args[2], *arguments[2:])
        stored = builder.load(builder.bitcast(source, _BYTES.as_pointer()), align=1)
        builder.store(stored, builder.bitcast(to, _BYTES.as_pointer()), align=1)
        marks = [builder.icmp_unsigned("==", stored, _eight_bits(each, 32)) for each in b'"\\']
        # Signed, so that bytes from 0x80 on are below, too.
        control = builder.icmp_signed("<", stored, _eight_bits(0x20, 32))
        found = builder.or_(builder.or_(*marks), control)
        return builder.zext(builder.bitcast(found, ir.IntType(32)), _WORD)

    return signature, generate


@intrinsic
def item_at(typing: Any, values: Any, at: Any) -> Any:
    """Return ``values[at]`` as an int64, for an index that is not negative."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item = builder.load(_address(context, builder, signature.args[0], *arguments))
        return context.cast(builder, item, signature.args[0].dtype, types.int64)

    return types.int64(values, types.int64), generate


@intrinsic
def put_item(typing: Any, values: Any, at: Any, item: Any) -> Any:
    """Have ``values[at] = item``, for an index that is not negative."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], *arguments[:2])
        builder.store(
            context.cast(builder, arguments[2], types.int64, signature.args[0].dtype), address
        )
        return context.get_dummy_value()

    return types.void(values, types.int64, types.int64), generate


@intrinsic
def not_digits(typing: Any, buf: Any, at: Any) -> Any:
    """Return which of 16 bytes are no digits."""

    def find(builder: Any, stored: Any) -> Any:
        value = builder.sub(stored, _eight_bits(0x30, 16))
        return builder.icmp_unsigned(">", value, _eight_bits(9, 16))

    return types.int64(buf, types.int64), _mask_of(16, find)


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


def _crc32c(bits: int, name: str) -> Any:
    """Return an intrinsic: the state of a CRC-32C after ``bits`` more, by an instruction."""
    half = ir.IntType(32)
    # ARM's takes a byte in 32 bits, and the state of either is 32 bits there.
    is_arm = name.startswith("llvm.aarch64")
    state_type = _WORD if bits == 64 and not is_arm else half
    value_type = half if bits == 8 and is_arm else ir.IntType(bits)

    @intrinsic
    def crc32c(typing: Any, crc: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(state_type, [state_type, value_type])
            add = cgutils.get_or_insert_function(builder.module, kind, name)
            wanted = zip(arguments, (state_type, value_type), strict=True)
            given = [each if to == _WORD else builder.trunc(each, to) for each, to in wanted]
            after = builder.call(add, given)
            return after if state_type == _WORD else builder.zext(after, _WORD)

        return types.int64(types.int64, types.int64), generate

    return crc32c


x86_crc32c_byte = _crc32c(8, "llvm.x86.sse42.crc32.32.8")
x86_crc32c_word = _crc32c(64, "llvm.x86.sse42.crc32.64.64")
arm_crc32c_byte = _crc32c(8, "llvm.aarch64.crc32cb")
arm_crc32c_word = _crc32c(64, "llvm.aarch64.crc32cx")


def _x86_product(builder: Any, pair: Any, other: Any, half: int) -> Any:
    """Return the product, without carries, of a half of each of two pairs: a pair, too."""
    kind = ir.FunctionType(_PAIR, [_PAIR, _PAIR, ir.IntType(8)])
    multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq")
    return builder.call(multiply, [pair, other, ir.IntType(8)(0x11 * half)])


def _arm_product(builder: Any, pair: Any, other: Any, half: int) -> Any:
    kind = ir.FunctionType(ir.VectorType(ir.IntType(8), 16), [_WORD, _WORD])
    multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.aarch64.neon.pmull64")
    index = ir.IntType(32)(half)
    words = [builder.extract_element(each, index) for each in (pair, other)]
    return builder.bitcast(builder.call(multiply, words), _PAIR)


def _multiply_without_carries(product_of: Any) -> Any:
    """Return an intrinsic: the lower half of the product of two polynomials of 64 bits each."""

    @intrinsic
    def multiply_without_carries(typing: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            first = ir.IntType(32)(0)
            pairs = [builder.insert_element(_PAIR([0, 0]), each, first) for each in arguments]
            return builder.extract_element(product_of(builder, *pairs, 0), first)

        return types.int64(types.int64, types.int64), generate

    return multiply_without_carries


x86_multiply_without_carries = _multiply_without_carries(_x86_product)
arm_multiply_without_carries = _multiply_without_carries(_arm_product)

# x^(n+32) and x^(n-32) modulo the polynomial, bits reflected: they move 16 bytes by n bits.
_FOLD_BY_1 = (0x01751997D0, 0x00CCAA009E)  # n = 128
_FOLD_BY_4 = (0x0154442BD4, 0x01C6E41596)  # n = 512


def _fold_crc32(product_of: Any) -> Any:
    """Return an intrinsic; see `kernels.decode_legacy`.

    Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ" (2009).
    """

    @intrinsic
    def fold_crc32(typing: Any, buf: Any, start: Any, blocks: Any, crc: Any) -> Any:
        signature = types.UniTuple(types.int64, 3)(buf, types.int64, types.int64, types.int64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, start, blocks, crc = arguments

            def block(number: Any) -> Any:
                at = builder.add(start, builder.shl(number, _WORD(4)))
                address = _address(context, builder, signature.args[0], array, at)
                return builder.load(builder.bitcast(address, _PAIR.as_pointer()), align=1)

            def move(what: Any, by: tuple[int, int]) -> Any:
                halves = [product_of(builder, what, _PAIR(by), half) for half in (0, 1)]
                return builder.xor(*halves)

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
                        builder.store(
                            builder.xor(moved, block(builder.add(number, _WORD(i)))), chain
                        )
                for chain in chains[1:]:
                    moved = move(builder.load(folded), _FOLD_BY_1)
                    builder.store(builder.xor(moved, builder.load(chain)), folded)
                builder.store(fours, done)
            with cgutils.for_range_slice(builder, builder.load(done), blocks, _WORD(1)) as (
                number,
                _,
            ):
                moved = move(builder.load(folded), _FOLD_BY_1)
                builder.store(builder.xor(moved, block(number)), folded)
            words = [builder.extract_element(builder.load(folded), index(i)) for i in range(2)]
            return context.make_tuple(builder, signature.return_type, [*words, _WORD(0)])

        return signature, generate

    return fold_crc32


x86_fold_crc32 = _fold_crc32(_x86_product)
arm_fold_crc32 = _fold_crc32(_arm_product)


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
