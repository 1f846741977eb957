"""Random histories of a log that is followed: what a fetch gets is what the files hold by then.

Appends, rolls, retention, compaction and truncation change the files as a broker changes them,
several between two looks.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from pylog.reading.damage import ReadMode
from tests.support.batches import ABORT, COMMIT, Built, batch_v2, joined, marker, plain_records
from tests.support.log_files import segment_path, write_partition, write_segment
from tests.unit.server.followed import content, fetched, followed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.server.replica_manager import ReplicaManager

STEPS = 30
FETCHES = 6
PRODUCERS = (1, 2, 3)


class History:
    """A log on the disk, and what is in it."""

    def __init__(self, log_directory: Path, choices: random.Random) -> None:
        self._choices = choices
        self._directory = write_partition(log_directory, {0: []})
        self.segments: dict[int, list[Built]] = {0: []}
        self.end_offset = 0
        self._epochs = [(0, 0)]
        self._written = 0
        self._write_epochs()

    @property
    def batches(self) -> list[Built]:
        return [batch for base in sorted(self.segments) for batch in self.segments[base]]

    def transactions(self) -> tuple[list[tuple[int, int, int]], dict[int, int]]:
        """Return the aborted ones (producer, first and last offset), and where open ones begin."""
        aborted, since = [], dict[int, int]()
        for batch in self.batches:
            if batch.is_control:
                first = since.pop(batch.producer_id, None)
                if first is not None and batch.control_type == ABORT:
                    aborted.append((batch.producer_id, first, batch.base_offset))
            elif batch.is_transactional:
                since.setdefault(batch.producer_id, batch.base_offset)
        return aborted, since

    def change(self) -> None:
        """Do one of the things that a broker does."""
        changes = (self._append, self._roll, self._delete_first, self._compact, self._truncate)
        self._choices.choices(changes, (6, 3, 1, 1.5, 1.5))[0]()

    def _append(self) -> None:
        added = [self._batch() for _ in range(self._choices.randint(1, 5))]
        last = max(self.segments)
        self.segments[last] += added
        with segment_path(self._directory, last).open("ab") as file:
            file.write(joined(added))

    def _batch(self) -> Built:
        self._written += 1
        kind, producer_id = self._choices.random(), self._choices.choice(PRODUCERS)
        if kind < 0.2:
            which = self._choices.choice((ABORT, COMMIT))
            batch = marker(self.end_offset, which, producer_id=producer_id)
        else:
            size = self._choices.randint(5, 60)
            count = self._choices.randint(1, 3)
            batch = batch_v2(
                plain_records(self.end_offset, count, timestamp=self._written, value_size=size),
                leader_epoch=self._epochs[-1][0],
                producer_id=producer_id if kind < 0.5 else -1,
                is_transactional=kind < 0.5,
            )
        self.end_offset = batch.last_offset + 1
        return batch

    def _roll(self) -> None:
        if self.segments[max(self.segments)]:
            self.segments[self.end_offset] = []
            write_segment(self._directory, self.end_offset, [])

    def _delete_first(self) -> None:
        first, *others = sorted(self.segments)
        aborted, since = self.transactions()
        reaches_over = any(begin < other <= end for _, begin, end in aborted for other in others)
        if others and not reaches_over and min(since.values(), default=others[0]) >= others[0]:
            self._remove(first)

    def _remove(self, base: int) -> None:
        del self.segments[base]
        for path in self._directory.glob(f"{base:020d}.*"):
            path.unlink()

    def _compact(self) -> None:
        for base in sorted(self.segments)[:-1][:1]:
            *batches, last = self.segments[base]
            self.segments[base] = [
                *(each for each in batches if each.is_transactional or each.base_offset % 2),
                last,
            ]
            path = segment_path(self._directory, base)
            cleaned = path.with_name("aside")
            cleaned.write_bytes(joined(self.segments[base]))
            for suffix in (".index", ".timeindex"):
                segment_path(self._directory, base, suffix).unlink(missing_ok=True)
            cleaned.rename(path)

    def _truncate(self) -> None:
        later = self.batches[len(self.batches) // 2 :]
        if not later:
            return
        cut = self._choices.choice(later).base_offset
        for base in sorted(self.segments)[1:]:
            if base >= cut:
                self._remove(base)
        last = max(self.segments)
        self.segments[last] = [each for each in self.segments[last] if each.base_offset < cut]
        os.truncate(segment_path(self._directory, last), len(joined(self.segments[last])))
        kept = self.segments[last]
        self.end_offset = kept[-1].last_offset + 1 if kept else last
        epoch = self._epochs[-1][0] + 1
        earlier = [each for each in self._epochs if each[1] < self.end_offset]
        self._epochs = [*earlier, (epoch, self.end_offset)]
        self._write_epochs()
        for _ in range(self._choices.randint(0, 5)):
            self._choices.choice((self._append, self._roll))()

    def _write_epochs(self) -> None:
        lines = "".join(f"{epoch} {offset}\n" for epoch, offset in self._epochs)
        written = self._directory / "aside"
        written.write_text(f"0\n{len(self._epochs)}\n{lines}", "utf-8")
        written.rename(self._directory / "leader-epoch-checkpoint")


def given_to_a_committed_reader(
    batches: list[Built], aborted: list[tuple[int, int]]
) -> Iterator[int]:
    """Yield the first offset of each batch that a consumer gives its user."""
    waiting, dropped = sorted(aborted, key=lambda each: each[1]), set[int]()
    for batch in batches:
        while waiting and waiting[0][1] <= batch.last_offset:
            dropped.add(waiting.pop(0)[0])
        if batch.is_control:
            dropped.discard(batch.producer_id)
        elif not batch.is_transactional or batch.producer_id not in dropped:
            yield batch.base_offset


def ensure_served(history: History, replicas: ReplicaManager, asked: tuple[int, int, int]) -> None:
    """Assert that a fetch gets what the files hold."""
    offset, max_bytes, isolation = asked
    answer = fetched(replicas, offset, max_bytes, isolation)
    aborted, since = history.transactions()
    stable = min([history.end_offset, *since.values()])
    limit = stable if isolation else history.end_offset
    assert (answer["errorCode"], answer["highWatermark"]) == (0, history.end_offset)
    assert not isolation or answer["lastStableOffset"] == stable
    following = [each for each in history.batches if each.last_offset >= offset]
    expected: list[Built] = []
    if following and following[0].last_offset < limit:
        first = following[0]
        base = max(each for each in history.segments if each <= first.base_offset)
        in_segment = [each for each in history.segments[base] if each in following]
        expected = [each for each in in_segment if each.last_offset < limit]
        data = joined(expected)[: max(max_bytes, len(first.data))]
        assert content(answer) == data
    else:
        assert answer["records"] == b""
    if isolation and expected:
        whole = [
            each for at, each in enumerate(expected) if len(joined(expected[: at + 1])) <= len(data)
        ]
        told = [(each["producerId"], each["firstOffset"]) for each in answer["abortedTransactions"]]
        assert list(given_to_a_committed_reader(whole, told)) == [
            each.base_offset
            for each in whole
            if not each.is_control
            and not any(
                each.producer_id == producer_id and begin <= each.base_offset <= end
                for producer_id, begin, end in aborted
                if each.is_transactional
            )
        ]


@pytest.mark.parametrize("mode", [ReadMode.FAILFAST, ReadMode.DROPMALFORMED])
@pytest.mark.parametrize("seed", range(8))
def test_a_fetch_gets_what_the_files_hold_by_then(
    tmp_path: Path, seed: int, mode: ReadMode
) -> None:
    choices = random.Random(seed)
    history = History(tmp_path, choices)
    with followed(tmp_path, mode=mode) as replicas:
        for _ in range(STEPS):
            for _ in range(choices.randint(1, 3)):
                history.change()
            replicas.refresh()
            for _ in range(FETCHES):
                offset = choices.randint(min(history.segments), history.end_offset)
                max_bytes = choices.choice((1, 100, 300, 1_000, 1 << 20))
                ensure_served(history, replicas, (offset, max_bytes, choices.randint(0, 1)))
