"""Where reading continues after damage, also where records hold what looks like batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import CorruptRecordError
from pylog.files.byte_source import LocalFile
from pylog.log_file.resynchronisation import find_next_batch, possible_headers
from tests.support.batches import (
    Built,
    Stored,
    batch_v2,
    crc32c,
    joined,
    message,
    plain_records,
    with_bad_crc,
    wrapper,
)
from tests.support.damage import (
    MAGIC_AT,
    PAYLOAD_AT,
    SIZE_AT,
    positions,
    visible_offsets,
    with_bytes,
    with_flip,
    with_size,
)
from tests.support.images import holding as images_at_the_end
from tests.support.log_files import segment_path, write_partition
from tests.support.reading import read_skipping_damage, spans

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BATCHES = [batch_v2(plain_records(offset, 5)) for offset in range(0, 30, 5)]
IMAGE = batch_v2(plain_records(1_000, 3)).data
IMAGES = {
    "one": IMAGE,
    "two in a row": joined([batch_v2(plain_records(offset, 3)) for offset in (12, 15)]),
    "one that is cut": joined([batch_v2(plain_records(offset, 3)) for offset in (12, 15)])[:-9],
    "a message of format v1": message(Stored(11, 5, b"k", b"image"), magic=1).data,
}


def holding(image: bytes, *, header: bool = False, last: bool = False) -> Built:
    """Return a batch of offsets 10 to 14 with a record that holds the image of a batch."""
    records = plain_records(10, 5)
    place = 4 if last else 2
    name = (("name", image),) if header else ()
    records[place] = records[place]._replace(value=b"" if header else image, headers=name)
    return batch_v2(records)


def read(directory: Path, batches: Sequence[Built], *, in_middle: bool = True) -> list[int]:
    """Return the offsets read of a partition with these batches, and maybe a segment after it."""
    segments = {0: list(batches)}
    if in_middle:
        segments[30] = [batch_v2(plain_records(30, 2))]
    path = write_partition(directory, segments, with_index=False, with_time_index=False)
    found, _ = read_skipping_damage(path)
    return [offset for offset in found if offset < 30]


@pytest.mark.parametrize("in_middle", [True, False])
@pytest.mark.parametrize("which", range(5))
def test_a_size_that_grew_by_the_next_batch_hides_that_one_from_nobody(
    tmp_path: Path, which: int, *, in_middle: bool
) -> None:
    batches = list(BATCHES)
    grown = len(batches[which].data) + len(batches[which + 1].data)
    batches[which] = with_size(batches[which], grown)
    sound = [*batches[:which], *batches[which + 1 :]]
    assert read(tmp_path, batches, in_middle=in_middle) == visible_offsets(sound)


@pytest.mark.parametrize("in_middle", [True, False])
@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("size_bytes", [-1, 0, 12, 13, 60, 75, 1 << 20, (1 << 31) - 1])
def test_a_wrong_size_costs_its_own_batch(
    tmp_path: Path, which: int, size_bytes: int, *, in_middle: bool
) -> None:
    batches = list(BATCHES)
    batches[which] = with_size(batches[which], size_bytes)
    sound = [each for place, each in enumerate(batches) if place != which]
    assert read(tmp_path, batches, in_middle=in_middle) == visible_offsets(sound)


@pytest.mark.parametrize("in_middle", [True, False])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
@pytest.mark.parametrize(
    "at", [0, SIZE_AT, SIZE_AT + 1, SIZE_AT + 3, MAGIC_AT, 17, 24, 59, PAYLOAD_AT]
)
def test_the_image_of_a_batch_in_a_damaged_one_is_not_a_batch(
    tmp_path: Path, at: int, image: bytes, *, last: bool, header: bool, in_middle: bool
) -> None:
    batches = list(BATCHES)
    batches[2] = with_flip(holding(image, header=header, last=last), at)
    # Where the offset alone is wrong, its neighbours prove the right one.
    sound = [each for place, each in enumerate(BATCHES) if place != 2 or at == 0]
    assert read(tmp_path, batches, in_middle=in_middle) == visible_offsets(sound)


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
@pytest.mark.parametrize("in_middle", [True, False])
def test_the_image_of_a_batch_in_the_last_one_is_not_a_batch(
    tmp_path: Path, image: bytes, *, in_middle: bool
) -> None:
    for at in (SIZE_AT, SIZE_AT + 2, MAGIC_AT, 40):
        batches = [*BATCHES[:2], with_flip(holding(image, last=True), at)]
        assert read(tmp_path / str(at), batches, in_middle=in_middle) == list(range(10))


@pytest.mark.parametrize("image", [IMAGES["one"], IMAGES["two in a row"]])
def test_an_image_in_a_batch_whose_header_is_gone_is_not_a_batch(
    tmp_path: Path, image: bytes
) -> None:
    batches = list(BATCHES)
    batches[2] = with_bytes(holding(image), 0, bytes(64))
    sound = [each for place, each in enumerate(BATCHES) if place != 2]
    assert read(tmp_path, batches) == visible_offsets(sound)


def test_an_image_in_a_sound_batch_is_a_value(tmp_path: Path) -> None:
    batches = [*BATCHES[:2], holding(IMAGE), *BATCHES[3:]]
    assert read(tmp_path, batches) == list(range(30))


@pytest.mark.parametrize(
    "damaged",
    [
        with_bad_crc,
        lambda built: with_size(built, -3),
        lambda built: with_size(built, 1 << 24),
        lambda built: with_flip(built, MAGIC_AT),
        lambda built: with_bytes(built, 0, bytes(64)),
        lambda built: with_bytes(built, 4, bytes(16)),
    ],
    ids=["checksum", "negative size", "large size", "magic", "zeros", "zeros in the header"],
)
@pytest.mark.parametrize("in_middle", [True, False])
def test_a_sound_batch_between_two_damaged_ones_is_read(
    tmp_path: Path, damaged: object, *, in_middle: bool
) -> None:
    batches = list(BATCHES)
    batches[1], batches[3] = damaged(batches[1]), damaged(batches[3])  # type: ignore[operator]
    sound = [BATCHES[0], BATCHES[2], *BATCHES[4:]]
    assert read(tmp_path, batches, in_middle=in_middle) == visible_offsets(sound)


def test_damaged_batches_in_a_row_are_one_range(tmp_path: Path) -> None:
    batches = list(BATCHES)
    for place in (1, 2, 3):
        batches[place] = with_flip(batches[place], PAYLOAD_AT + 5)
    at = positions(batches)
    directory = write_partition(tmp_path, {0: batches})
    found, ranges = read_skipping_damage(directory)
    assert found == visible_offsets([BATCHES[0], *BATCHES[4:]])
    assert spans(ranges) == [(at[1], at[4], 5, 20)]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("at", [SIZE_AT + 3, 12, MAGIC_AT, 17, 30])
def test_old_formats_lose_the_damaged_entry_alone(tmp_path: Path, which: int, at: int) -> None:
    image = message(Stored(2, 5, b"k", b"image"), magic=1).data
    batches = [
        message(Stored(0, 1, b"k", image), magic=0),
        message(Stored(1, 1, b"k", image), magic=1),
        wrapper(plain_records(2, 3), magic=1, codec="gzip"),
        message(Stored(5, 1, b"k", image + image), magic=1),
    ]
    sound = [each for place, each in enumerate(batches) if place != which]
    batches[which] = with_flip(batches[which], at)
    assert read(tmp_path, batches) == visible_offsets(sound)


def test_nothing_sound_after_damage_is_the_end_of_the_file(tmp_path: Path) -> None:
    batches = [*BATCHES[:3], *(with_bad_crc(each) for each in BATCHES[3:])]
    at = positions(batches)
    found, ranges = read_skipping_damage(write_partition(tmp_path, {0: batches}))
    assert found == list(range(15))
    assert spans(ranges) == [(at[3], at[6], 15, None)]


@pytest.mark.parametrize("size_bytes", [-1, 12, 1 << 20])
def test_a_cut_batch_is_not_a_torn_tail_because_the_last_one_is_damaged_too(
    tmp_path: Path, size_bytes: int
) -> None:
    batches = list(BATCHES)
    batches[1], batches[5] = with_size(batches[1], 1 << 24), with_size(batches[5], size_bytes)
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    with pytest.raises(CorruptRecordError):
        pylog.scan(directory).to_table()
    found, _ = read_skipping_damage(directory)
    assert found == visible_offsets([BATCHES[0], *BATCHES[2:5]])


def test_an_old_message_hides_its_image_also_without_size_and_checksum(tmp_path: Path) -> None:
    # Nothing follows the value: the image is followed by the log's next message.
    image = message(Stored(1, 5, b"k", b"image"), magic=1).data
    batches = [message(Stored(offset, 1, b"k", image), magic=1) for offset in range(4)]
    batches[1] = with_bytes(batches[1], SIZE_AT, bytes(6))
    assert read(tmp_path, batches) == [0, 2, 3]


def test_the_image_at_the_end_of_an_old_log_is_no_batch_where_it_claims_the_message_again(
    tmp_path: Path,
) -> None:
    image = batch_v2(plain_records(3, 2)).data
    batches = [message(Stored(offset, 1, b"k", image), magic=0) for offset in range(4)]
    batches[3] = with_bytes(batches[3], SIZE_AT, bytes(5))
    assert read(tmp_path, batches, in_middle=False) == [0, 1, 2]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size_bytes", [80, 1 << 24])
def test_a_short_old_message_before_the_last_one_is_damaged_not_torn(
    tmp_path: Path, magic: int, size_bytes: int
) -> None:
    batches = [message(Stored(offset, 1, None, b""), magic=magic) for offset in range(4)]
    batches[2] = with_size(batches[2], size_bytes)
    assert len(batches[2].data) + len(batches[3].data) < 70
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    with pytest.raises(CorruptRecordError, match="another one begins"):
        pylog.scan(directory).to_table()
    assert read_skipping_damage(directory)[0] == [0, 1, 3]


def test_the_last_short_old_message_with_a_wrong_size_is_damaged_not_torn(tmp_path: Path) -> None:
    batches = [message(Stored(offset, 1, None, b""), magic=0) for offset in range(2)]
    batches[1] = with_size(batches[1], 60)
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    with pytest.raises(CorruptRecordError, match="its checksum is that of"):
        pylog.scan(directory).to_table()


@pytest.mark.parametrize("window_bytes", [17, 1 << 22])
def test_the_image_in_an_old_message_is_no_batch_where_the_next_damaged_one_claims_its_offsets(
    tmp_path: Path, window_bytes: int
) -> None:
    values = (batch_v2(plain_records(1, 2)).data, b"", b"")
    batches = [
        message(Stored(offset, 1, b"k", value), magic=0) for offset, value in enumerate(values)
    ]
    batches[0] = with_bytes(batches[0], SIZE_AT, bytes(4))
    batches[1] = with_flip(batches[1], SIZE_AT + 4)
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    scan = pylog.scan(directory, mode="DROPMALFORMED", window_bytes=window_bytes)
    assert scan.to_table()["offset"].to_pylist() == [2]


def test_a_tail_of_zeros_after_damage_costs_no_search_of_each_byte(tmp_path: Path) -> None:
    batches = [with_size(BATCHES[0], -1)]
    directory = write_partition(tmp_path, {0: batches}, with_index=False, with_time_index=False)
    with segment_path(directory, 0).open("ab") as file:
        file.write(bytes(1 << 22))
    with LocalFile(str(segment_path(directory, 0))) as source:
        assert len(list(possible_headers(source, 1, source.size(), 0))) < 20
    assert read_skipping_damage(directory)[0] == []


FAKE_HEADER = (20).to_bytes(8, "big") + (90).to_bytes(4, "big") + bytes(4) + b"\x02"
"""Bytes that could be the header of the batch after an image."""


def with_checksum_of_its_beginning(image: bytes) -> Built:
    """Return a batch whose checksum is also that of its bytes up to the image in it.

    A checksum is linear: four bytes after the image make it whatever one likes.
    """
    value = b"before" + image + FAKE_HEADER
    start, records = 21, plain_records(10, 5)

    def built(patch: int) -> bytes:
        end = patch.to_bytes(4, "big")
        return batch_v2([*records[:4], records[4]._replace(value=value + end)]).data

    plain = crc32c(built(0)[start:])
    wanted = crc32c(built(0)[start : built(0).index(image)]) ^ plain
    basis: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        effect, patch = crc32c(built(1 << bit)[start:]) ^ plain, 1 << bit
        while effect and effect.bit_length() in basis:
            other = basis[effect.bit_length()]
            effect, patch = effect ^ other[0], patch ^ other[1]
        if effect:
            basis[effect.bit_length()] = effect, patch
    patch = 0
    while wanted:
        effect, bits = basis[wanted.bit_length()]
        wanted, patch = wanted ^ effect, patch ^ bits
    data = built(patch)
    assert crc32c(data[start:]) == crc32c(data[start : data.index(image)])
    return replace(batch_v2(records), data=data)


@pytest.mark.parametrize("in_middle", [True, False])
@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("at", [0, SIZE_AT, SIZE_AT + 2, MAGIC_AT, -30, -5, -1])
def test_a_checksum_that_fits_up_to_an_image_as_well_proves_no_image(
    tmp_path: Path, at: int, images: int, *, in_middle: bool
) -> None:
    image = joined([batch_v2(plain_records(12 + 3 * each, 3)) for each in range(images)])
    batches = list(BATCHES)
    forged = with_checksum_of_its_beginning(image)
    batches[2] = with_flip(forged, at % len(forged.data))
    # Where the offset alone is wrong, its neighbours prove the right one.
    sound = [each for place, each in enumerate(BATCHES) if place != 2 or at == 0]
    assert read(tmp_path, batches, in_middle=in_middle) == visible_offsets(sound)


@pytest.mark.parametrize("in_middle", [True, False])
@pytest.mark.parametrize("images", [1, 2, 20])
@pytest.mark.parametrize("to_the_end", [True, False])
def test_a_size_that_has_shrunk_to_lead_to_an_image_does_not_make_it_a_batch(
    tmp_path: Path, images: int, *, to_the_end: bool, in_middle: bool
) -> None:
    held = [batch_v2(plain_records(11 + each, 1)) for each in range(images)]
    outer = images_at_the_end(plain_records(10, 5), held, to_the_end=to_the_end)
    batches = list(BATCHES)
    batches[2] = with_size(outer, outer.data.index(held[0].data[:-1]))
    sound = [each for place, each in enumerate(BATCHES) if place != 2]
    assert read(tmp_path, batches, in_middle=in_middle) == visible_offsets(sound)


def test_after_bytes_that_are_not_a_header_the_next_batch_is_the_first_sound_one(
    tmp_path: Path,
) -> None:
    # What offset the wrong bytes claim decides nothing where they cannot be a header.
    junk = b"\xee" * 100
    batches = [batch_v2(plain_records(offset, 1)) for offset in range(4)]
    path = tmp_path / "junk.log"
    for first in range(3):
        path.write_bytes(junk + joined(batches[first:]))
        with LocalFile(str(path)) as source:
            found = find_next_batch(source, 0, source.size(), lowest_offset=0)
        assert found == len(junk)
