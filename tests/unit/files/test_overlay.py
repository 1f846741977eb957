"""An overlay does what a disk does, and the disk stays as it is."""

from __future__ import annotations

import random
import shutil
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pylog.errors import KafkaStorageError, LogStorageError
from pylog.files import disk, overlay
from pylog.files.durable_io import DurableIO
from pylog.files.overlay import Overlay
from tests.unit.files.overlaid import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import HowMany

NAMES = ("a", "b", "c", "d/a", "d/b", "d/e/a", "f/a")
DIRECTORIES = ("d", "d/e", "f", "g")


@pytest.fixture
def over() -> Iterator[Overlay]:
    with Overlay() as made:
        yield made


def populate(directory: Path, rng: random.Random) -> None:
    for name in ("d", "d/e"):
        (directory / name).mkdir()
    for name in ("a", "d/a", "d/e/a"):
        (directory / name).write_bytes(rng.randbytes(rng.randrange(200)))


def _write(io: DurableIO, path: str, rng: random.Random) -> None:
    position, data = rng.randrange(300), rng.randbytes(rng.randrange(150))
    with io.open(path) as file:
        file.write_at(position, data)
        file.write_at(position + len(data), data[:7])


def _cut(io: DurableIO, path: str, rng: random.Random) -> int:
    with io.open(path) as file:
        file.truncate(rng.randrange(400))
        return file.size()


def _read(io: DurableIO, path: str, rng: random.Random) -> bytes:
    with io.open(path) as file:
        return file.read_at(rng.randrange(300), rng.randrange(400))


def _create(io: DurableIO, path: str, rng: random.Random) -> int:
    with io.open(path, create=True) as file:
        return file.size()


def _set_time(io: DurableIO, path: str, rng: random.Random) -> int:
    io.set_last_modified(path, rng.randrange(400_000))
    return disk.stat(path).st_mtime_ns


def _beside(path: str, rng: random.Random, names: tuple[str, ...]) -> str:
    return f"{path.partition('/t/')[0]}/t/{rng.choice(names)}"


OF_FILES: tuple[Callable[[DurableIO, str, random.Random], object], ...] = (
    *(_write, _write, _cut, _read, _create, _set_time),
    lambda io, path, rng: io.replace(path, _beside(path, rng, NAMES)),
    lambda io, path, rng: io.remove(path, missing_ok=rng.random() < 0.5),
    lambda io, path, rng: io.write_atomically(path, rng.randbytes(rng.randrange(150))),
)
OF_DIRECTORIES: tuple[Callable[[DurableIO, str, random.Random], object], ...] = (
    lambda io, path, rng: io.make_directory(path, exist_ok=rng.random() < 0.5),
    lambda io, path, _: io.remove_directory(path),
    lambda io, path, rng: io.replace(path, _beside(path, rng, DIRECTORIES)),
)


def do_one(io: DurableIO, base: str, rng: random.Random) -> object:
    """Do one thing, the same for the same state of ``rng``; return what came of it."""
    names, things = rng.choice([(NAMES, OF_FILES)] * 3 + [(DIRECTORIES, OF_DIRECTORIES)])
    do = rng.choice(things)
    try:
        return do(io, f"{base}/{rng.choice(names)}", rng)
    except LogStorageError as error:
        # Two numbers may be right for a directory that is renamed into itself, or over another.
        return type(error), None if names is DIRECTORIES else getattr(error, "errno", None)


@pytest.mark.parametrize("spooled_bytes", [0, 1000, overlay.SPOOLED_BYTES])
def test_whatever_is_done_gives_what_a_copy_of_the_disk_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spooled_bytes: int, how_many: HowMany
) -> None:
    monkeypatch.setattr(overlay, "SPOOLED_BYTES", spooled_bytes)
    for seed in range(how_many(40, 1000)):
        real, copy = tmp_path / f"real-{seed}" / "t", tmp_path / f"copy-{seed}" / "t"
        real.mkdir(parents=True)
        populate(real, random.Random(seed))
        shutil.copytree(real, copy)
        before = tree(str(real))
        with Overlay() as over:
            of_copy, of_overlay = random.Random(seed), random.Random(seed)
            for step in range(60):
                expected = do_one(DurableIO(), str(copy), of_copy)
                found = do_one(over, over.path(real), of_overlay)
                assert found == expected, (seed, step)
                assert tree(over.path(real)) == tree(str(copy)), (seed, step)
        assert tree(str(real)) == before, seed


def test_a_file_that_cannot_be_written_can_be_changed_on_an_overlay(
    tmp_path: Path, over: Overlay
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    path.chmod(0o444)
    modified_ns = path.stat().st_mtime_ns
    with over.open(over.path(path)) as file:
        file.write_at(3, b"tact")
        assert file.read_at(0, 100) == b"contact"
    assert path.read_bytes() == b"content"
    assert path.stat().st_mtime_ns == modified_ns


def test_links_are_listed_as_on_the_disk(tmp_path: Path, over: Overlay) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "folder").mkdir()
    for name in ("file", "folder", "gone"):
        (tmp_path / f"to {name}").symlink_to(name)

    def listed(path: str) -> list[tuple[object, ...]]:
        with disk.scandir(path) as entries:
            return sorted(
                (each.name, each.is_dir(), each.is_file(), each.is_symlink(), kind_of(each))
                for each in entries
            )

    def kind_of(entry: disk.Entry) -> int:
        try:
            return stat.S_IFMT(entry.stat().st_mode)
        except FileNotFoundError:
            return 0

    assert listed(over.path(tmp_path)) == listed(str(tmp_path))
    with over.open(over.path(tmp_path / "new"), create=True):
        (tmp_path / "new").touch()
    assert listed(over.path(tmp_path)) == listed(str(tmp_path))


def test_a_large_file_costs_what_is_written_to_it(tmp_path: Path, over: Overlay) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 34)
    with over.open(over.path(path)) as changed:
        changed.write_at(1 << 33, b"here")
        changed.truncate((1 << 33) + 2)
        assert changed.size() == (1 << 33) + 2
        assert changed.read_at((1 << 33) - 2, 100) == b"\0\0he"


def test_nothing_is_left_of_an_overlay_that_is_closed(tmp_path: Path) -> None:
    with Overlay() as over:
        path = over.path(tmp_path)
        over.write_file(f"{path}/new", b"content")
        assert disk.exists(f"{path}/new")
    assert not disk.exists(path)
    assert over.root not in disk.overlays
    assert not list(tmp_path.iterdir())
    with suppress(KafkaStorageError):
        over.write_file(f"{path}/new", b"content")
    assert not list(tmp_path.iterdir())
