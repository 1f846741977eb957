"""What can happen to the disks of a node between a stop and a start, and to those of three nodes.

A harm of a node takes its disks in the order of ``log.dirs``: the first has the log of the
cluster's metadata, and each has partitions of `TOPIC`. It returns the disks that the node starts
with, in their order.

A harm of a cluster takes the disks of its nodes, one of each, by node id from 1 on: all of them
vote, and each has partitions of `TOPIC` that no other node has. It returns the disks that nodes of
these ids start with; None for one that does not start.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.support.metadata_log import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOPIC = "orders"
FUTURE = f".{'a' * 32}-future"

Disks = list["Path"]
NodeHarm = tuple[str, "Callable[[Disks], Disks]"]


def partitions_on(disk: Path) -> list[Path]:
    """Return the live partitions of the topic on a disk."""
    return sorted(disk.glob(f"{TOPIC}-*[0-9]"))


# ---- meta.properties


def change_properties(disk: Path, **changes: str | None) -> None:
    """Set properties of ``meta.properties``, ``node_id`` for ``node.id``; None takes one away."""
    path = disk / "meta.properties"
    names = {name.replace("_", "."): value for name, value in changes.items()}
    kept = [
        line
        for line in path.read_text().splitlines()
        if line.partition("=")[0] not in names and not line.startswith("#")
    ]
    kept += [f"{name}={value}" for name, value in names.items() if value is not None]
    path.write_text("".join(f"{line}\n" for line in kept))


def _identities() -> Iterator[NodeHarm]:
    """Yield what is wrong with whose directory one is."""
    changes: dict[str, dict[str, str | None]] = {
        "no directory id": {"directory_id": None},
        "another directory id": {"directory_id": "AAAAAAAAAAAAAAAAAAAB7Q"},
        "a reserved directory id": {"directory_id": "AAAAAAAAAAAAAAAAAAAABQ"},
        "a directory id of zeros": {"directory_id": "A" * 22},
        "a directory id that is none": {"directory_id": "no!"},
        "an empty directory id": {"directory_id": ""},
        "version 0": {"version": "0", "node_id": None, "broker_id": "1"},
        "no version": {"version": None, "node_id": None, "broker_id": "1"},
        "version 0 with node.id": {"version": "0"},
        "version 2": {"version": "2"},
        "version 7": {"version": "7"},
        "another node": {"node_id": "7"},
        "another cluster": {"cluster_id": "A" * 22},
        "no cluster": {"cluster_id": None},
        "no node": {"node_id": None},
    }
    for what, change in changes.items():
        for which, places in (("first", (0,)), ("second", (1,)), ("each", (0, 1))):
            if which == "each" and what.startswith(("another d", "a reserved", "a directory")):
                continue  # twice the same id is another harm

            def harm(
                disks: Disks,
                change: dict[str, str | None] = change,
                places: tuple[int, ...] = places,
            ) -> Disks:
                for place in places:
                    change_properties(disks[place], **change)
                return disks

            yield f"{what} on the {which} disk", harm


def _one_directory_id(disks: Disks) -> Disks:
    shutil.copyfile(disks[0] / "meta.properties", disks[1] / "meta.properties")
    return disks


def _exchanged_directory_ids(disks: Disks) -> Disks:
    texts = [(each / "meta.properties").read_text() for each in disks]
    for disk, text in zip(disks, reversed(texts), strict=True):
        (disk / "meta.properties").write_text(text)
    return disks


# ---- which disks, in which order


def _link_to(place: int) -> Callable[[Disks], Disks]:
    def harm(disks: Disks) -> Disks:
        link = disks[0].parent / "link"
        link.symlink_to(disks[place])
        return [*disks, link]

    return harm


def _new_disk(place: int, *, formatted: bool) -> Callable[[Disks], Disks]:
    """Return the harm that puts an empty disk in the place of one; ``formatted``: with a new id."""

    def harm(disks: Disks) -> Disks:
        disk = disks[place]
        (disk.parent / "aside").mkdir()
        disk.rename(disk.parent / "aside" / disk.name)
        disk.mkdir()
        if formatted:
            shutil.copyfile(
                disk.parent / "aside" / disk.name / "meta.properties", disk / "meta.properties"
            )
            change_properties(disk, directory_id="AAAAAAAAAAAAAAAAAAAB7Q")
        return disks

    return harm


def _as_formatted(disks: Disks) -> Disks:
    """Put a new disk in the first one's place, with all that Kafka's tool lays down."""
    old = [*disks[0].glob("bootstrap.checkpoint"), *(disks[0] / METADATA).glob("*0-0000000000.*")]
    old = [each.relative_to(disks[0]) for each in old if each.suffix == ".checkpoint"]
    _new_disk(0, formatted=True)(disks)
    aside = disks[0].parent / "aside" / disks[0].name
    for each in old:
        (disks[0] / each).parent.mkdir(exist_ok=True)
        shutil.copyfile(aside / each, disks[0] / each)
    return disks


# ---- partitions on the wrong disk, and such as are being moved


def _cut_log(partition: Path) -> None:
    """Take away all but the first segment, as if the rest had never been there."""
    first, *others = sorted(partition.glob("*.log"))
    for log in others:
        for each in partition.glob(f"{log.stem}.*"):
            each.unlink()
    epochs = partition / "leader-epoch-checkpoint"
    epochs.write_text("0\n1\n0 0\n")
    assert first.stat().st_size


def _future(
    *,
    assigned: bool,
    live: bool = True,
    cut: str = "",
    on: int | None = None,
) -> Callable[[Disks], Disks]:
    """Return the harm that makes a ``-future`` directory of a partition of the first disk.

    ``assigned``: whether the metadata assigns the partition to its disk; ``live``: whether the live
    directory stays, on the other one; ``cut``: which of the two is shorter.
    """

    def harm(disks: Disks) -> Disks:
        source = partitions_on(disks[0])[0]
        here, there = (disks[0], disks[1]) if assigned else (disks[1], disks[0])
        here = disks[on] if on is not None else here
        live_path, future = there / source.name, here / f"{source.name}{FUTURE}"
        shutil.copytree(source, future)
        if assigned and live and live_path != source:
            shutil.copytree(source, live_path)
        if assigned or not live:
            shutil.rmtree(source)
        if cut == "future":
            _cut_log(future)
        elif cut == "live":
            _cut_log(live_path)
        return disks

    return harm


def _moved(disks: Disks) -> Disks:
    source = partitions_on(disks[0])[0]
    source.rename(disks[1] / source.name)
    return disks


def _twice(disks: Disks) -> Disks:
    source = partitions_on(disks[0])[0]
    shutil.copytree(source, disks[1] / source.name)
    return disks


def _future_of_each_disk(disks: Disks) -> Disks:
    source = partitions_on(disks[0])[0]
    for disk in disks:
        shutil.copytree(source, disk / f"{source.name}{FUTURE}")
    return disks


def _future_beside_live(disks: Disks) -> Disks:
    source = partitions_on(disks[0])[0]
    shutil.copytree(source, disks[0] / f"{source.name}{FUTURE}")
    return disks


def _future_beside_live_elsewhere(disks: Disks) -> Disks:
    source = partitions_on(disks[0])[0]
    shutil.copytree(source, disks[1] / f"{source.name}{FUTURE}")
    source.rename(disks[1] / source.name)
    return disks


def _future_of_a_gone_disk(disks: Disks) -> Disks:
    change_properties(disks[0], directory_id="AAAAAAAAAAAAAAAAAAAB7Q")
    source = partitions_on(disks[0])[0]
    source.rename(disks[1] / f"{source.name}{FUTURE}")
    return disks


def _future_without(name: str) -> Callable[[Disks], Disks]:
    def harm(disks: Disks) -> Disks:
        _future(assigned=True, live=True)(disks)
        [future] = disks[0].glob("*-future")
        (future / name).unlink()
        return disks

    return harm


def _empty_future(disks: Disks) -> Disks:
    """Leave a ``-future`` directory without a file where the partition belongs."""
    _future(assigned=True, live=True)(disks)
    [future] = disks[0].glob("*-future")
    shutil.rmtree(future)
    future.mkdir()
    return disks


# ---- the log of the cluster's metadata


def metadata_snapshots_on(disk: Path) -> list[Path]:
    """Return the snapshots of the metadata, the oldest first."""
    return sorted((disk / METADATA).glob("*.checkpoint"))


def _half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _flip(position: float) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[int(len(content) * position)] ^= 0x55
        path.write_bytes(content)

    return change


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _garbage(path: Path) -> None:
    path.write_bytes(b"\xff nonsense\n" * 9)


def _metadata() -> Iterator[NodeHarm]:
    files: dict[str, Callable[[Path], list[Path]]] = {
        "the newest snapshot": lambda disk: metadata_snapshots_on(disk)[-1:],
        "the oldest snapshot": lambda disk: metadata_snapshots_on(disk)[:1],
        "each snapshot": metadata_snapshots_on,
        "the metadata's log": lambda disk: sorted((disk / METADATA).glob("*.log")),
        "the metadata's index": lambda disk: sorted((disk / METADATA).glob("*.index")),
        "the metadata's epochs": lambda disk: [disk / METADATA / "leader-epoch-checkpoint"],
        "the metadata's topic id": lambda disk: [disk / METADATA / "partition.metadata"],
        "quorum-state": lambda disk: [disk / METADATA / "quorum-state"],
        "bootstrap.checkpoint": lambda disk: [
            each for each in [disk / "bootstrap.checkpoint"] if each.exists()
        ],
    }
    changes: dict[str, Callable[[Path], object]] = {
        "missing": lambda path: path.unlink(),
        "empty": _emptied,
        "cut": _half,
        "garbage": _garbage,
        "flipped early": _flip(0.1),
        "flipped": _flip(0.5),
        "flipped late": _flip(0.95),
    }
    for file, find in files.items():
        for what, change in changes.items():

            def harm(
                disks: Disks,
                find: Callable[[Path], list[Path]] = find,
                change: Callable[[Path], object] = change,
            ) -> Disks:
                for path in find(disks[0]):
                    path.chmod(0o644)
                    change(path)
                return disks

            yield f"{file} {what}", harm


def _without_metadata(disks: Disks) -> Disks:
    shutil.rmtree(disks[0] / METADATA)
    return disks


def _empty_metadata(disks: Disks) -> Disks:
    _without_metadata(disks)
    (disks[0] / METADATA).mkdir()
    return disks


def _metadata_twice(disks: Disks) -> Disks:
    shutil.copytree(disks[0] / METADATA, disks[1] / METADATA)
    return disks


def _metadata_on_the_second(disks: Disks) -> Disks:
    (disks[0] / METADATA).rename(disks[1] / METADATA)
    return disks


def _foreign_in_metadata(name: str) -> Callable[[Disks], Disks]:
    def harm(disks: Disks) -> Disks:
        (disks[0] / METADATA / name).write_bytes(b"\0\5\x16\7")
        return disks

    return harm


NODE_HARMS: list[NodeHarm] = [
    ("nothing", lambda disks: disks),
    *_identities(),
    ("one directory id on both disks", _one_directory_id),
    ("exchanged directory ids", _exchanged_directory_ids),
    ("the disks in the other order", lambda disks: disks[::-1]),
    ("the first disk once more through a link", _link_to(0)),
    ("the second disk once more through a link", _link_to(1)),
    ("the first disk alone", lambda disks: disks[:1]),
    ("the second disk alone", lambda disks: disks[1:]),
    ("a new formatted disk in the first place", _new_disk(0, formatted=True)),
    ("a new disk as Kafka formats it in the first place", _as_formatted),
    ("a new formatted disk in the second place", _new_disk(1, formatted=True)),
    ("an empty disk in the first place", _new_disk(0, formatted=False)),
    ("an empty disk in the second place", _new_disk(1, formatted=False)),
    ("a partition on the other disk", _moved),
    ("a partition on both disks", _twice),
    ("a future that is equal, where it is assigned", _future(assigned=True)),
    ("a future that is shorter, where it is assigned", _future(assigned=True, cut="future")),
    ("a future that is longer, where it is assigned", _future(assigned=True, cut="live")),
    ("a future without a live one, where it is assigned", _future(assigned=True, live=False)),
    ("a future that is equal, and not assigned", _future(assigned=False)),
    ("a future that is shorter, and not assigned", _future(assigned=False, cut="future")),
    ("a future that is longer, and not assigned", _future(assigned=False, cut="live")),
    ("a future without a live one, and not assigned", _future(assigned=False, live=False)),
    ("a future without a live one, of a gone disk", _future_of_a_gone_disk),
    ("a future beside the live one", _future_beside_live),
    ("a future beside the live one, and not assigned", _future_beside_live_elsewhere),
    ("a future on each disk", _future_of_each_disk),
    ("a future without its topic id", _future_without("partition.metadata")),
    ("a future without epochs", _future_without("leader-epoch-checkpoint")),
    ("a future without a file", _empty_future),
    *_metadata(),
    ("the metadata missing", _without_metadata),
    ("the metadata's directory empty", _empty_metadata),
    ("the metadata on both disks", _metadata_twice),
    ("the metadata on the second disk", _metadata_on_the_second),
    ("a ._ file in the metadata", _foreign_in_metadata("._00000000000000000000.log")),
    ("a copied log in the metadata", _foreign_in_metadata("00000000000000000000 (1).log")),
    ("a .DS_Store in the metadata", _foreign_in_metadata(".DS_Store")),
    (
        "a part of a snapshot",
        _foreign_in_metadata("00000000000000099999-0000000009.checkpoint.part"),
    ),
]
"""Of one node with two disks."""


# ---- three nodes


def _exchanged_node_ids(disks: Disks) -> list[Path | None]:
    change_properties(disks[0], node_id="2")
    change_properties(disks[1], node_id="1")
    return [disks[1], disks[0], *disks[2:]]


def _on_another_node(*, stays: bool) -> Callable[[Disks], list[Path | None]]:
    def harm(disks: Disks) -> list[Path | None]:
        source = partitions_on(disks[0])[0]
        shutil.copytree(source, disks[1] / source.name)
        if not stays:
            shutil.rmtree(source)
        return [*disks]

    return harm


def _only(*nodes: int) -> Callable[[Disks], list[Path | None]]:
    return lambda disks: [disk if at in nodes else None for at, disk in enumerate(disks, start=1)]


def _first_without_metadata(disks: Disks) -> list[Path | None]:
    shutil.rmtree(disks[0] / METADATA)
    return [*disks]


def _metadata_of_another_node(disks: Disks) -> list[Path | None]:
    shutil.rmtree(disks[0] / METADATA)
    shutil.copytree(disks[1] / METADATA, disks[0] / METADATA)
    return [*disks]


def _first_is_new(disks: Disks) -> list[Path | None]:
    _new_disk(0, formatted=True)(disks)
    return [*disks]


def _first_has_the_id_of_the_second(disks: Disks) -> list[Path | None]:
    text = (disks[1] / "meta.properties").read_text()
    [line] = [each for each in text.splitlines() if each.startswith("directory.id=")]
    change_properties(disks[0], directory_id=line.partition("=")[2])
    return [*disks]


CLUSTER_HARMS: list[tuple[str, Callable[[Disks], list[Path | None]]]] = [
    ("nothing", lambda disks: [*disks]),
    ("two of three nodes", _only(1, 2)),
    ("one of three nodes", _only(1)),
    ("exchanged node ids", _exchanged_node_ids),
    ("a partition on another node, too", _on_another_node(stays=True)),
    ("a partition on another node", _on_another_node(stays=False)),
    ("a node without the metadata", _first_without_metadata),
    ("a node with the metadata of another one", _metadata_of_another_node),
    ("a node with a new disk", _first_is_new),
    ("a node with the directory id of another one", _first_has_the_id_of_the_second),
]
"""Of three nodes that vote, with a disk each."""
