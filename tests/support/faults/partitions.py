"""What can happen to the files of a partition, or of a log directory, between a stop and a start.

A harm of a partition changes its directory; `Harmed.sibling` is another partition of its topic that
nothing happens to. A harm of a log directory changes that.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, NamedTuple

from tests.support.batches import (
    ABORT,
    batch_v2,
    joined,
    marker,
    message_bytes,
    plain_records,
    wrapper_of,
)
from tests.support.codecs import compress
from tests.support.corruption import entries, resealed
from tests.support.damage import flip
from tests.support.log_files import write_topic_id
from tests.support.metadata_log import feature_record, write_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Harmed(NamedTuple):
    """A partition, and another one of its topic."""

    directory: Path
    sibling: Path

    @property
    def logs(self) -> list[Path]:
        """Its segments, the first one first."""
        return sorted(self.directory.glob("*.log"))

    def of(self, segment: int, suffix: str) -> Path:
        """Return a file of a segment."""
        return self.logs[segment].with_suffix(suffix)


Harm = tuple[str, "Callable[[Harmed], object]"]
DirectoryHarm = tuple[str, "Callable[[Path], object]"]


# ---- one file

_FILES: dict[str, Callable[[Harmed], Path]] = {
    "first log": lambda harmed: harmed.of(0, ".log"),
    "middle log": lambda harmed: harmed.of(1, ".log"),
    "last log": lambda harmed: harmed.of(-1, ".log"),
    "middle index": lambda harmed: harmed.of(1, ".index"),
    "last index": lambda harmed: harmed.of(-1, ".index"),
    "middle time index": lambda harmed: harmed.of(1, ".timeindex"),
    "last time index": lambda harmed: harmed.of(-1, ".timeindex"),
    "last snapshot": lambda harmed: sorted(harmed.directory.glob("*.snapshot"))[-1],
    "leader epochs": lambda harmed: harmed.directory / "leader-epoch-checkpoint",
    "partition.metadata": lambda harmed: harmed.directory / "partition.metadata",
}


def _missing(path: Path, _harmed: Harmed) -> None:
    path.unlink()


def _empty(path: Path, _harmed: Harmed) -> None:
    path.write_bytes(b"")


def _cut(path: Path, _harmed: Harmed) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _zeroed(path: Path, _harmed: Harmed) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _flipped(path: Path, _harmed: Harmed) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x55
    path.write_bytes(content)


def _from_another(path: Path, harmed: Harmed) -> None:
    candidates = sorted(harmed.sibling.glob(f"*{path.suffix}" if path.suffix else path.name))
    shutil.copyfile(candidates[-1], path)


_OPERATIONS: dict[str, Callable[[Path, Harmed], None]] = {
    "missing": _missing,
    "empty": _empty,
    "cut": _cut,
    "zeroed": _zeroed,
    "flipped": _flipped,
    "another partition's": _from_another,
}


def _of_one_file() -> Iterator[Harm]:
    for file, find in _FILES.items():
        for operation, change in _OPERATIONS.items():
            # Ids of one topic are the same; a flipped one is another topic's, or none, by chance.
            if file == "partition.metadata" and operation in ("another partition's", "flipped"):
                continue

            def harm(
                harmed: Harmed,
                find: Callable[[Harmed], Path] = find,
                change: Callable[[Path, Harmed], None] = change,
            ) -> None:
                change(find(harmed), harmed)

            yield f"{file} {operation}", harm


# ---- tails, batches, names


def _append(segment: int, data: Callable[[Path], bytes]) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        path = harmed.of(segment, ".log")
        path.write_bytes(path.read_bytes() + data(path))

    return harm


def _zeros(count: int) -> Callable[[Path], bytes]:
    return lambda _path: bytes(count)


def _rewrite(
    segment: int, change: Callable[[list[bytes]], list[bytes]]
) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        path = harmed.of(segment, ".log")
        path.write_bytes(b"".join(change(entries(path.read_bytes()))))

    return harm


def _half_of_the_last(path: Path) -> bytes:
    last = entries(path.read_bytes())[-1]
    return last[: len(last) // 2]


def _swap(suffix: str) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        one, other = harmed.of(0, suffix), harmed.of(1, suffix)
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)

    return harm


def _without(pattern: str) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        for path in harmed.directory.glob(pattern):
            path.unlink()

    return harm


def _named(segment: int, suffix: str) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        path = harmed.of(segment, ".log")
        path.rename(path.with_name(path.name + suffix))

    return harm


def _copied(name: str, segment: int = 1) -> Callable[[Harmed], object]:
    return lambda harmed: shutil.copyfile(harmed.of(segment, ".log"), harmed.directory / name)


def _with_epoch(batch: bytes, epoch: int) -> bytes:
    return batch[:12] + epoch.to_bytes(4, "big") + batch[16:]


def _next_offset(path: Path) -> int:
    last = entries(path.read_bytes())[-1]
    return int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") + 1


def _nested(offset: int) -> bytes:
    """Return a compressed message of v1 that holds another one."""
    message = message_bytes(0, b"k", b"v", magic=1, timestamp=1_000)
    inner = wrapper_of(compress("gzip", message), offset=0, magic=1, codec="gzip", timestamp=1_000)
    return wrapper_of(
        compress("gzip", inner), offset=offset, magic=1, codec="gzip", timestamp=1_000
    )


def _wrapper_in_a_wrapper(path: Path) -> bytes:
    return _nested(_next_offset(path))


def _two_wrappers(harmed: Harmed) -> None:
    path = harmed.of(-1, ".log")
    offset = _next_offset(path)
    message = message_bytes(0, b"k", b"v", magic=1, timestamp=1_000)
    sound = wrapper_of(compress("gzip", message), offset=offset, magic=1, codec="gzip")
    path.write_bytes(path.read_bytes() + sound + _nested(offset + 1))


def _wrapper_without_index(harmed: Harmed) -> None:
    _append(-1, _wrapper_in_a_wrapper)(harmed)
    harmed.of(-1, ".index").unlink()


def _aborted_twice(path: Path) -> bytes:
    """Return a transaction and its marker, and the same once more, as a run that is repeated."""
    offset = _next_offset(path)
    data = batch_v2(
        plain_records(offset, 3),
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    end = marker(offset + 3, ABORT, producer_id=7)
    return joined([data, end, data, end])


def _at_the_highest_offset(path: Path) -> bytes:
    """Return a batch after which there is no offset; its checksum does not cover that."""
    last = entries(path.read_bytes())[-1]
    delta = int.from_bytes(last[23:27], "big")
    return (2**63 - 1 - delta).to_bytes(8, "big") + last[8:]


def _index_that_leads_behind_all(harmed: Harmed) -> None:
    first, second = entries(harmed.of(-1, ".log").read_bytes())[:2]
    harmed.of(-1, ".log").write_bytes(first + second)
    entry = (10_000).to_bytes(4, "big") + len(first).to_bytes(4, "big")
    harmed.of(-1, ".index").write_bytes(entry)


def _swap_file(segment: int, share: float) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        path = harmed.of(segment, ".log")
        content = path.read_bytes()
        path.with_name(f"{path.name}.swap").write_bytes(content[: int(len(content) * share)])

    return harm


def _swap_of_two_segments(harmed: Harmed) -> None:
    """Leave what a compaction leaves that was killed before it removed the old segments."""
    path = harmed.logs[0]
    content = b"".join(each.read_bytes() for each in harmed.logs[:2])
    path.with_name(f"{path.name}.swap").write_bytes(content)


def _damaged_without_index(segment: int) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        batches = entries(harmed.of(segment, ".log").read_bytes())
        spoiled = bytearray(batches[1])
        spoiled[-1] ^= 1
        content = b"".join([batches[0], bytes(spoiled), *batches[2:]])
        harmed.of(segment, ".log").write_bytes(content)
        harmed.of(segment, ".index").unlink()

    return harm


def _records_that_cannot_be_decoded(batches: list[bytes]) -> list[bytes]:
    middle = len(batches) // 2
    spoiled = bytearray(batches[middle])
    spoiled[61] = 0x7F  # the first record's length
    return [*batches[:middle], resealed(bytes(spoiled)), *batches[middle + 1 :]]


PARTITION_HARMS: tuple[Harm, ...] = (
    *_of_one_file(),
    *(
        (f"{zeros} zeros after the last batch", _append(-1, _zeros(zeros)))
        for zeros in (1, 5, 11, 12, 17, 18, 5000)
    ),
    ("zeros, then a byte, after the last batch", _append(-1, lambda _: bytes(4000) + b"\1")),
    ("half a batch after the last one", _append(-1, _half_of_the_last)),
    ("bytes of no batch after the last one", _append(-1, lambda _: b"\xff" * 300)),
    *(
        (f"{zeros} zeros after a middle segment", _append(1, _zeros(zeros)))
        for zeros in (5, 17, 18, 5000)
    ),
    ("half a batch after a middle segment", _append(1, _half_of_the_last)),
    ("the last batch cut", _rewrite(-1, lambda all_: [*all_[:-1], all_[-1][:-7]])),
    ("a middle batch gone", _rewrite(1, lambda all_: [*all_[:2], *all_[3:]])),
    ("the first batches of a segment gone", _rewrite(1, lambda all_: all_[2:])),
    ("a batch twice", _rewrite(1, lambda all_: [*all_[:3], all_[2], *all_[3:]])),
    ("a batch twice at the end", _rewrite(-1, lambda all_: [*all_, all_[-1]])),
    ("all batches of a segment twice", _rewrite(1, lambda all_: [*all_, *all_])),
    ("all batches of the last segment twice", _rewrite(-1, lambda all_: [*all_, *all_])),
    ("two batches in wrong order", _rewrite(1, lambda all_: [all_[1], all_[0], *all_[2:]])),
    (
        "a later epoch in the middle",
        _rewrite(1, lambda all_: [*all_[:3], *(_with_epoch(each, 7) for each in all_[3:])]),
    ),
    ("an epoch that goes back", _rewrite(1, lambda all_: [_with_epoch(all_[0], 9), *all_[1:]])),
    ("records that cannot be decoded", _rewrite(1, _records_that_cannot_be_decoded)),
    *(
        (f"two segments' {suffix} swapped", _swap(suffix))
        for suffix in (".log", ".index", ".timeindex")
    ),
    *(
        (f"no {pattern}", _without(pattern))
        for pattern in ("*.index", "*.timeindex", "*.snapshot", "*.log", "*")
    ),
    *(
        (f"a middle log named {suffix}", _named(1, suffix))
        for suffix in (".deleted", ".swap", ".cleaned")
    ),
    ("the first log named .deleted", _named(0, ".deleted")),
    ("the last log named .deleted", _named(-1, ".deleted")),
    ("a copy of a log named .swap", _copied("00000000000000000000.log.swap", 0)),
    *(
        (f"{what} .log.swap beside segment {segment}", _swap_file(segment, share))
        for what, share in (("an empty", 0.0), ("half a", 0.5))
        for segment in (0, 1, -1)
    ),
    ("a .log.swap of two segments", _swap_of_two_segments),
    ("a damaged batch in a middle segment without an index", _damaged_without_index(1)),
    ("a damaged batch in the first segment without an index", _damaged_without_index(0)),
    ("a log whose name is no number", _copied("copy.log")),
    ("a log whose name is short", _copied("7.log")),
    (
        "an empty segment far above",
        lambda harmed: (harmed.directory / "00000000000000900000.log").write_bytes(b""),
    ),
    (
        "an empty segment in a gap",
        lambda harmed: (
            harmed.directory / f"{_base(harmed.of(1, '.log')) + 1:020d}.log"
        ).write_bytes(b""),
    ),
    ("epochs above the end", lambda harmed: _epochs(harmed, "0\n2\n0 0\n5 900000\n")),
    (
        "epochs that contradict each other",
        lambda harmed: _epochs(harmed, "0\n3\n0 0\n3 50\n2 90\n"),
    ),
    ("epochs that begin late", lambda harmed: _epochs(harmed, "0\n1\n0 60\n")),
    ("no epochs", lambda harmed: _epochs(harmed, "0\n0\n")),
    ("epochs of a wrong count", lambda harmed: _epochs(harmed, "0\n5\n0 0\n")),
    (
        "another topic's id",
        lambda harmed: write_topic_id(harmed.directory, "Igo74ZAZCxWJ1lxdTzs-vQ"),
    ),
    (
        "the zero topic id",
        lambda harmed: write_topic_id(harmed.directory, "AAAAAAAAAAAAAAAAAAAAAA"),
    ),
    ("a wrapper in a wrapper", _append(-1, _wrapper_in_a_wrapper)),
    ("a wrapper in a wrapper, after another one", _two_wrappers),
    ("a wrapper in a wrapper, and no index", _wrapper_without_index),
    ("an aborted transaction twice", _append(-1, _aborted_twice)),
    ("a batch at the highest offset", _append(-1, _at_the_highest_offset)),
    ("an index that leads behind all batches", _index_that_leads_behind_all),
    ("an unknown file", lambda harmed: (harmed.directory / "notes.txt").write_text("see ticket")),
)


def _base(path: Path) -> int:
    return int(path.stem)


def _epochs(harmed: Harmed, text: str) -> None:
    (harmed.directory / "leader-epoch-checkpoint").write_text(text)


# ---- log directories

_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def _checkpoint(name: str, content: bytes | None) -> Callable[[Path], None]:
    def harm(directory: Path) -> None:
        path = directory / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)

    return harm


def _of_checkpoints() -> Iterator[DirectoryHarm]:
    contents: dict[str, bytes | None] = {
        "missing": None,
        "empty": b"",
        "NULs": bytes(60),
        "of a wrong count": b"0\n9\nharm 0 5\n",
        "of version 1": b"1\n1\nharm 0 5\n",
        "with NULs at its end": b"0\n1\nharm 0 5\n" + bytes(8),
    }
    for name in _CHECKPOINTS:
        for what, content in contents.items():
            yield f"{name} {what}", _checkpoint(name, content)


def _write_text(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def harm(directory: Path) -> None:
        path = directory / name
        path.write_text(change(path.read_text()))

    return harm


def _metadata(change: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda directory: change(directory / "__cluster_metadata-0")


def _unlink(directory: Path, pattern: str) -> None:
    for path in directory.glob(pattern):
        path.unlink()


def _cut_log(directory: Path) -> None:
    path = sorted(directory.glob("*.log"))[-1]
    batches = entries(path.read_bytes())
    path.write_bytes(b"".join(batches[: len(batches) // 2]))


def _flip_log(directory: Path) -> None:
    path = sorted(directory.glob("*.log"))[0]
    batches = entries(path.read_bytes())
    flip(path, sum(map(len, batches[: len(batches) // 2])) + 30)


def _recovered_whole(*harms: Callable[[Harmed], object]) -> Callable[[Path], None]:
    """Harm a partition of which an unclean start recovers all segments."""

    def harm(directory: Path) -> None:
        (directory / _CHECKPOINTS[0]).unlink()
        for each in harms:
            each(Harmed(directory / "harm-0", directory / "harm-1"))

    return harm


def _append_zeros(directory: Path) -> None:
    path = sorted(directory.glob("*.log"))[-1]
    path.write_bytes(path.read_bytes() + bytes(5000))


_SPOILT: dict[str, Callable[[Path], object]] = {
    "5000 zeros": _append_zeros,
    "a damaged partition.metadata": lambda path: (path / "partition.metadata").write_text("x"),
    "leader epochs of NULs": lambda path: (path / "leader-epoch-checkpoint").write_bytes(bytes(60)),
    "copy.log": lambda path: (path / "copy.log").write_bytes(b""),
    "a flipped batch": _flip_log,
}


def _aside(
    state: str, spoil: Callable[[Path], object] | None = None, *, is_alone: bool = False
) -> Callable[[Path], None]:
    def harm(directory: Path) -> None:
        live, place = directory / "harm-0", directory / f"harm-0.{1:032x}-{state}"
        shutil.copytree(live, place)
        if is_alone:
            shutil.rmtree(live)
        if spoil is not None:
            spoil(place)

    return harm


def _middle(operation: str, suffix: str) -> Callable[[Harmed], None]:
    return lambda harmed: _OPERATIONS[operation](harmed.of(1, suffix), harmed)


QUORUM_STATE = (
    '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    '"data_version":1}'
)


def _of_quorum_state() -> Iterator[DirectoryHarm]:
    contents = {
        "empty": "",
        "NULs": "\0" * 60,
        "cut": QUORUM_STATE[:40],
        "that begins with an empty line": "\n" + QUORUM_STATE,
        "with NULs at its end": QUORUM_STATE + "\0" * 8,
        "with a second line": QUORUM_STATE + "\nsee ticket",
        "without an epoch": QUORUM_STATE.replace('"leaderEpoch":1,', ""),
        "of version 2": QUORUM_STATE.replace(":1}", ":2}"),
    }
    for what, content in contents.items():
        name = "__cluster_metadata-0/quorum-state"
        yield f"quorum-state {what}", _checkpoint(name, content.encode())


def _of_bootstrap_checkpoint() -> Iterator[DirectoryHarm]:
    changes: dict[str, Callable[[bytes], bytes]] = {
        "of level 21": lambda content: content,
        "of level 4": lambda content: content.replace(b"\x00\x15\x00", b"\x00\x04\x00"),
        "of level 99": lambda content: content.replace(b"\x00\x15\x00", b"\x00\x63\x00"),
        "empty": lambda _: b"",
        "NULs": lambda _: bytes(60),
        "cut": lambda content: content[: len(content) // 2],
        "whose footer is cut": lambda content: content[:-5],
        "of another feature": lambda content: content.replace(b"metadata.v", b"metadatx.v"),
        "with a wrong checksum": lambda content: (
            content[:20] + bytes([content[20] ^ 1]) + content[21:]
        ),
        "whose footer is damaged": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        "with 17 NULs at its end": lambda content: content + bytes(17),
        "with 18 NULs at its end": lambda content: content + bytes(18),
    }
    for what, change in changes.items():

        def harm(directory: Path, change: Callable[[bytes], bytes] = change) -> None:
            path = write_snapshot(directory, 0, [feature_record(21)])
            path.write_bytes(change(path.read_bytes()))
            path.rename(directory / "bootstrap.checkpoint")

        yield f"bootstrap.checkpoint {what}", harm


def _stray_below_the_log_start(directory: Path) -> None:
    _aside("stray")(directory)
    stray = next(directory.glob("*-stray"))
    first, second = sorted(stray.glob("*.log"))[:2]
    for path in stray.glob("*"):
        if path.stem.isdecimal() and path.stem > first.stem:
            path.unlink()
    _checkpoint(_CHECKPOINTS[1], f"0\n1\nharm 0 {int(second.stem) + 1}\n".encode())(directory)


DIRECTORY_HARMS: tuple[DirectoryHarm, ...] = (
    *_of_checkpoints(),
    *(
        (f"no recovery points, {what}", _recovered_whole(*harms))
        for what, harms in {
            "two segments' .log swapped": [_swap(".log")],
            "a middle log flipped": [_middle("flipped", ".log")],
            "a middle log flipped and without index": [
                _middle("flipped", ".log"),
                _middle("missing", ".index"),
            ],
            "a middle segment twice and without index": [
                _rewrite(1, lambda all_: [*all_, *all_]),
                _middle("missing", ".index"),
            ],
            "a middle log empty": [_middle("empty", ".log")],
            "a middle log of another partition": [_middle("another partition's", ".log")],
        }.items()
    ),
    ("recovery points at the end", _checkpoint(_CHECKPOINTS[0], b"0\n1\nharm 0 900000\n")),
    ("a log start inside the log", _checkpoint(_CHECKPOINTS[1], b"0\n1\nharm 0 40\n")),
    ("a log start above the end", _checkpoint(_CHECKPOINTS[1], b"0\n1\nharm 0 900000\n")),
    ("meta.properties missing", lambda directory: (directory / "meta.properties").unlink()),
    ("meta.properties empty", _write_text("meta.properties", lambda _: "")),
    (
        "meta.properties of another node",
        _write_text("meta.properties", lambda text: text.replace("node.id=1", "node.id=8")),
    ),
    (
        "meta.properties of another cluster",
        _write_text(
            "meta.properties",
            lambda text: re.sub("cluster.id=.*", "cluster.id=otherotherotherother22", text),
        ),
    ),
    ("a directory that is no partition", lambda directory: (directory / "backup").mkdir()),
    ("a directory whose name has a hyphen", lambda directory: (directory / "back-up").mkdir()),
    (
        "a partition twice",
        lambda directory: shutil.copytree(directory / "harm-0", directory / "harm-00"),
    ),
    (
        "a future partition beside the live one",
        lambda directory: shutil.copytree(
            directory / "harm-0", directory / f"harm-0.{1:032x}-future"
        ),
    ),
    (
        "a future partition alone",
        lambda directory: (directory / "harm-0").rename(directory / f"harm-0.{1:032x}-future"),
    ),
    (
        "a stray partition",
        lambda directory: shutil.copytree(
            directory / "harm-0", directory / f"harm-0.{1:032x}-stray"
        ),
    ),
    (
        "a deleted partition",
        lambda directory: shutil.copytree(
            directory / "harm-0", directory / f"harm-0.{1:032x}-delete"
        ),
    ),
    ("a partition gone", lambda directory: shutil.rmtree(directory / "harm-0")),
    ("a partition gone, and its stray left", _aside("stray", is_alone=True)),
    ("a partition gone, being deleted", _aside("delete", is_alone=True)),
    *(
        (f"{what} in a {state} partition", _aside(state, spoil))
        for state in ("stray", "delete")
        for what, spoil in _SPOILT.items()
    ),
    *(
        (f"{what} in a future partition alone", _aside("future", spoil, is_alone=True))
        for what, spoil in _SPOILT.items()
    ),
    ("a log start above the end of a stray partition", _stray_below_the_log_start),
    (
        "a partition that the metadata does not have",
        lambda directory: shutil.copytree(directory / "harm-0", directory / "harm-900"),
    ),
    (
        "a topic that the metadata does not have",
        lambda directory: shutil.copytree(directory / "harm-0", directory / "other-0"),
    ),
    ("metadata log missing", lambda directory: shutil.rmtree(directory / "__cluster_metadata-0")),
    ("metadata without quorum-state", _metadata(lambda path: _unlink(path, "quorum-state"))),
    ("metadata without snapshots", _metadata(lambda path: _unlink(path, "*.checkpoint"))),
    ("metadata without logs", _metadata(lambda path: _unlink(path, "*.log"))),
    ("metadata cut at a batch", _metadata(_cut_log)),
    ("metadata damaged in the middle", _metadata(_flip_log)),
    (
        "metadata without partition.metadata",
        _metadata(lambda path: _unlink(path, "partition.metadata")),
    ),
    *_of_quorum_state(),
    *_of_bootstrap_checkpoint(),
    *(
        (
            f"leader epochs of the metadata {what}",
            _checkpoint("__cluster_metadata-0/leader-epoch-checkpoint", content),
        )
        for what, content in (
            ("missing", None),
            ("empty", b""),
            ("none", b"0\n0\n"),
            ("that contradict each other", b"0\n2\n3 0\n1 2\n"),
        )
    ),
)
