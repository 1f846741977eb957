"""Hypothesis strategies for batches of every format, and for whole segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.support.batches import (
    ABORT,
    COMMIT,
    INT64_MAX,
    Built,
    Headers,
    Stored,
    batch_v2,
    empty_batch_v2,
    marker,
    message,
    wrapper,
)
from tests.support.codecs import CODECS, LEGACY_CODECS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NULLABLE_BYTES = st.none() | st.binary(max_size=40)
CONTENTS = st.one_of(
    NULLABLE_BYTES,
    st.binary(max_size=40),
    # Around the lengths at which varints, and the kernels' fast form, change.
    st.builds(
        lambda fill, size: bytes([fill]) * size,
        st.integers(0, 255),
        st.sampled_from((62, 63, 64, 65, 200, 8_180, 8_191, 8_192, 20_000)),
    ),
)
MILLISECONDS = st.integers(0, 5_000)
"""Few enough that equal and disordered timestamps are common."""
ANY_TIMESTAMP = st.one_of(
    MILLISECONDS,
    st.just(-1),
    st.integers(1_500_000_000_000, 1_800_000_000_000),
    st.integers(-(2**63), INT64_MAX),
)
HEADERS: st.SearchStrategy[Headers] = st.lists(
    st.tuples(st.text(max_size=6), NULLABLE_BYTES), max_size=3
).map(tuple)


@dataclass(frozen=True)
class Body:
    """A record without its offset: how far it lies above the one before, and its content."""

    gap: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def bodies(timestamps: st.SearchStrategy[int] = MILLISECONDS) -> st.SearchStrategy[Body]:
    gaps = st.one_of(st.just(1), st.just(1), st.integers(1, 300), st.integers(8_000, 9_000))
    return st.builds(Body, gaps, timestamps, CONTENTS, CONTENTS, st.just(()) | HEADERS)


def _placed(first_offset: int, contents: Sequence[Body], *, with_headers: bool) -> list[Stored]:
    records, offset = [], first_offset - 1
    for place, body in enumerate(contents):
        offset += 1 if place == 0 else body.gap
        headers = body.headers if with_headers else ()
        records.append(Stored(offset, body.timestamp, body.key, body.value, headers))
    return records


@st.composite
def v2_data(
    draw: st.DrawFn, timestamps: st.SearchStrategy[int] = MILLISECONDS
) -> Callable[[int], Built]:
    """Draw a builder of a v2 data batch, given the offset it may begin at."""
    contents = draw(st.lists(bodies(timestamps), min_size=1, max_size=6))
    before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    codec = draw(st.sampled_from(CODECS))
    append_time = draw(st.none() | timestamps)
    horizon = draw(st.none() | st.integers(0, 10_000))
    is_transactional = draw(st.booleans())
    producer_id = draw(st.integers(1, 2)) if is_transactional else draw(st.integers(-1, 2))

    def build(offset: int) -> Built:
        # Compaction removes records at either end and keeps the batch's offsets.
        records = _placed(offset + before, contents, with_headers=True)
        return batch_v2(
            records,
            base_offset=offset,
            last_offset=records[-1].offset + after,
            codec=codec,
            append_time=append_time,
            delete_horizon=horizon,
            leader_epoch=offset % 7 - 1,
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            is_transactional=is_transactional,
        )

    return build


@st.composite
def v2_markers(
    draw: st.DrawFn, timestamps: st.SearchStrategy[int] = MILLISECONDS
) -> Callable[[int], Built]:
    kind = draw(st.sampled_from((ABORT, COMMIT)))
    producer_id, timestamp = draw(st.integers(1, 2)), draw(timestamps)
    return lambda offset: marker(offset, kind, producer_id=producer_id, timestamp=timestamp)


@st.composite
def v2_empty(
    draw: st.DrawFn, timestamps: st.SearchStrategy[int] = MILLISECONDS
) -> Callable[[int], Built]:
    span, stamp = draw(st.integers(0, 5)), draw(timestamps)
    return lambda offset: empty_batch_v2(offset, offset + span, max_timestamp=stamp)


@st.composite
def legacy(
    draw: st.DrawFn, timestamps: st.SearchStrategy[int] = MILLISECONDS
) -> Callable[[int], Built]:
    """Draw a builder of a v0 or v1 message or wrapper."""
    magic = draw(st.integers(0, 1))
    append_time = draw(st.none() | timestamps) if magic else None
    codec = draw(st.sampled_from(("none", *LEGACY_CODECS)))
    contents = draw(st.lists(bodies(timestamps), min_size=1, max_size=6))
    inner_magic = draw(st.integers(0, magic))
    removed = draw(st.integers(0, 3))

    def build(offset: int) -> Built:
        if codec == "none":
            (record,) = _placed(offset, contents[:1], with_headers=False)
            return message(record, magic=magic, append_time=append_time)
        records = _placed(offset + removed, contents, with_headers=False)
        # The wrapper at offset 0 is old librdkafka's: its inner offsets count from 0, too.
        first = 0 if records[-1].offset == 0 else offset
        return wrapper(
            records,
            magic=magic,
            codec=codec,
            inner_magic=inner_magic,
            append_time=append_time,
            first_offset=first,
        )

    return build


def any_batch(
    timestamps: st.SearchStrategy[int] = MILLISECONDS,
) -> st.SearchStrategy[Callable[[int], Built]]:
    kinds = (v2_data, v2_data, v2_markers, v2_empty, legacy)
    return st.one_of([kind(timestamps) for kind in kinds])


def laid_out(first_offset: int, builders: Sequence[Callable[[int], Built]]) -> list[Built]:
    """Return the batches with offsets that go up."""
    batches, offset = [], first_offset
    for build in builders:
        built = build(offset)
        batches.append(built)
        offset = built.last_offset + 1
    return batches


@st.composite
def segments(
    draw: st.DrawFn,
    builders: st.SearchStrategy[Callable[[int], Built]] | None = None,
    *,
    min_size: int = 0,
    max_size: int = 8,
) -> list[Built]:
    """Draw the batches of one segment, whatever their formats, in offset order."""
    first_offset = draw(st.sampled_from((0, 0, 5, 3_000_000_000)))
    chosen = builders if builders is not None else any_batch()
    return laid_out(first_offset, draw(st.lists(chosen, min_size=min_size, max_size=max_size)))


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """Draw ``data`` with a few bytes changed, cut out or put in."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(changed) - 1)))
        match draw(st.sampled_from(("set", "flip", "insert", "delete"))):
            case "set" if changed:
                changed[at] = draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF)))
            case "flip" if changed:
                changed[at] ^= 1 << draw(st.integers(0, 7))
            case "insert":
                changed[at:at] = draw(st.binary(min_size=1, max_size=3))
            case "delete" if changed:
                del changed[at]
    return bytes(changed)
