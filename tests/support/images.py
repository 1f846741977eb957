"""Batches with values that hold the images of sound batches, and index entries that lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.support.batches import Built, Stored, batch_v2, joined
from tests.support.log_files import (
    offset_entries,
    offset_index_bytes,
    segment_path,
    time_entries,
    time_index_bytes,
    write_segment,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

FAKE = b"FAKE"
LARGEST_PAD = 3_000


def chain(first_offset: int, count: int, *, timestamp: int = 1_000) -> list[Built]:
    """Return the images of ``count`` batches of one record each, offsets in a row."""
    return [
        batch_v2([Stored(first_offset + place, timestamp, None, FAKE)]) for place in range(count)
    ]


def holding(records: Sequence[Stored], images: Sequence[Built], *, to_the_end: bool) -> Built:
    """Return a batch whose last value holds images.

    ``to_the_end``: the last image ends where the batch does. Its own last byte is the number of
    headers of its record, 0, and so is that of the record that holds it.
    """
    data = joined(images)
    *others, last = records
    return batch_v2([*others, last._replace(value=data[:-1] if to_the_end else data)])


@dataclass
class Segment:
    """Batches in a row, and the bytes at which images in their values begin."""

    base_offset: int
    batches: list[Built] = field(default_factory=list)
    images: list[tuple[int, int]] = field(default_factory=list)
    """(offset of the image, byte of the file)"""


def draw_log(random: random.Random) -> list[Segment]:
    """Return one to three segments; timestamps go up by batch, images are anywhere in them."""
    log: list[Segment] = []
    offset, timestamp = random.choice((0, 7)), 1_000
    for _ in range(random.randint(1, 3)):
        segment = Segment(offset)
        log.append(segment)
        position = 0
        for _ in range(random.randint(2, 12)):
            count = random.randint(1, 4)
            records = [
                Stored(offset + place, timestamp, b"k", b"v" * random.choice((1, 1, LARGEST_PAD)))
                for place in range(count)
            ]
            built = batch_v2(records)
            if random.random() < 0.5:
                near = offset + random.choice((-3, -1, 0, 1, count, count + 4, 60))
                images = chain(max(0, near), random.randint(1, 5), timestamp=timestamp + 2)
                built = holding(records, images, to_the_end=random.random() < 0.5)
                at = position + built.data.index(images[0].data[:-1])
                for image in images:
                    segment.images.append((image.base_offset, at))
                    at += len(image.data)
            segment.batches.append(built)
            position += len(built.data)
            offset = built.last_offset + 1
            timestamp += random.randint(1, 9)
    return log


def records_of(log: Sequence[Segment]) -> list[Stored]:
    return [record for each in log for built in each.batches for record in built.records]


def write_log(directory: Path, log: Sequence[Segment]) -> None:
    for each in log:
        write_segment(
            directory, each.base_offset, each.batches, with_index=False, with_time_index=False
        )


def write_lying_indexes(directory: Path, segment: Segment, random: random.Random) -> str:
    """Write an offset and a time index with one, some or all entries wrong; return a description.

    Entries of the offset index lead into images. Those of the time index have wrong timestamps or
    offsets. Both stay in order if chance wills.
    """
    every = random.randint(1, 3)
    entries = offset_entries(segment.batches, every=every)
    lies = random.choice(("none", "one", "some", "all"))
    share = {"none": 0.0, "one": 0.0, "some": 0.5, "all": 1.0}[lies]
    wrong = [random.random() < share for _ in entries]
    if lies == "one" and entries:
        wrong[random.randrange(len(entries))] = True
    if segment.images:
        entries = [
            random.choice(segment.images) if is_wrong else entry
            for entry, is_wrong in zip(entries, wrong, strict=True)
        ]
        if lies == "all":
            entries += random.sample(segment.images, random.randint(0, len(segment.images)))
    if random.random() < 0.7:
        entries = sorted({max(0, offset): at for offset, at in entries}.items())
    base = segment.base_offset
    content = offset_index_bytes([(max(base, each), at) for each, at in entries], base)
    content += bytes(random.choice((0, 0, 8, 80)))
    segment_path(directory, base, ".index").write_bytes(content)
    stamps = time_entries(segment.batches, every=every)
    for place in range(len(stamps)):
        if random.random() < share or (lies == "one" and place == len(stamps) - 1):
            stamp, offset = stamps[place]
            shifted = max(0, stamp + random.choice((-20, -3, -1, 1, 30)))
            stamps[place] = (shifted, max(base, offset + random.choice((0, 0, -2, 1, 5))))
    segment_path(directory, base, ".timeindex").write_bytes(time_index_bytes(stamps, base))
    return f"{base}: {lies}, every {every}, entries {entries}, stamps {stamps}"


def walked(path: Path) -> list[tuple[int, int]]:
    """Return (first offset, byte) of every v2 batch of a sound file, by sizes from byte 0 on."""
    data = path.read_bytes()
    found, position = [], 0
    while position < len(data):
        found.append((int.from_bytes(data[position : position + 8], "big"), position))
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    assert all(one < other for one, other in pairwise(found))
    return found
