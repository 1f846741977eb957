"""The text files: checkpoints, partition metadata, meta.properties, and the clean shutdown file.

An input: a byte that names the kind of file, and the file. What is read must be what is read again
from a file written of it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pylog.errors import CorruptCheckpointError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.files.clean_shutdown import read_clean_shutdown
from pylog.files.java_properties import parse_java_properties
from pylog.files.leader_epochs import read_leader_epoch_checkpoint
from pylog.files.meta_properties import read_meta_properties
from pylog.files.partition_metadata import format_uuid, read_partition_metadata
from tests.fuzz.golden_files import golden_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

MAX_BYTES = 1_000


def check(data: bytes, file: Path) -> None:
    file.write_bytes(data[1:])
    kind = data[0] if data else 0
    error = None
    try:
        _CHECKS[kind % len(_CHECKS)](file)
    except CorruptCheckpointError as caught:
        error = str(caught)
    if error is not None:  # one line that names the file, whatever was in it
        assert str(file) in error
        assert len(error.splitlines()) == 1


def _write_entries(file: Path, entries: Iterable[Iterable[object]]) -> None:
    lines = [" ".join(map(str, entry)) for entry in entries]
    file.write_bytes("\n".join(["0", str(len(lines)), *lines, ""]).encode())


def _check_offset_checkpoint(file: Path) -> None:
    offsets = read_offset_checkpoint(file)
    entries = [(topic, partition, offset) for (topic, partition), offset in offsets.items()]
    assert all(-(2**31) <= partition < 2**31 for _, partition, _ in entries)
    assert all(-(2**63) <= offset < 2**63 for _, _, offset in entries)
    _write_entries(file, entries)
    assert read_offset_checkpoint(file) == offsets


def _check_leader_epoch_checkpoint(file: Path) -> None:
    entries = read_leader_epoch_checkpoint(file)
    assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(entries))
    assert all(min(entry) >= 0 for entry in entries)
    _write_entries(file, entries)
    assert read_leader_epoch_checkpoint(file) == entries


def _check_partition_metadata(file: Path) -> None:
    metadata = read_partition_metadata(file)
    assert metadata.version >= 0
    topic_id = format_uuid(metadata.topic_id)
    file.write_text(f"version: {metadata.version}\ntopic_id: {topic_id}", "utf-8")
    assert read_partition_metadata(file) == metadata


def _check_meta_properties(file: Path) -> None:
    text = file.read_bytes().decode("iso-8859-1")
    try:
        properties = _values(text)
    except ValueError:
        pass
    else:
        lines = [f"{_escaped(key)}={_escaped(value)}" for key, value in properties.items()]
        assert _values("\n".join(lines)) == properties
    found = read_meta_properties(file)
    assert found.version in {0, 1, 2}
    assert found.version == 0 or found.node_id is not None
    assert found.version != 1 or found.cluster_id is not None


def _values(text: str) -> dict[str, str]:
    return {key: each.value for key, each in parse_java_properties(text).items()}


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(
        f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)
    )


def _check_clean_shutdown(file: Path) -> None:
    try:
        found = read_clean_shutdown(file)
    except CorruptCheckpointError as error:
        raise AssertionError("never fails because of the content") from error
    assert found is not None
    assert found.broker_epoch is None or 0 <= found.broker_epoch < 2**63


_CHECKS: tuple[Callable[[Path], None], ...] = (
    _check_offset_checkpoint,
    _check_leader_epoch_checkpoint,
    _check_partition_metadata,
    _check_meta_properties,
    _check_clean_shutdown,
)
_KINDS = (
    ("offset-checkpoint", "-offset-checkpoint"),
    ("leader-epoch-checkpoint",),
    ("partition.metadata",),
    ("meta.properties",),
    (".kafka_cleanshutdown",),
)


def seeds() -> Iterator[bytes]:
    texts = (
        b"0\n2\nweb-events 0 8531\nweb-events 1 -9106\n",
        b"0\r\n3\n0 0\n3 1204\n4\t1300 \n",
        b"version: 0\ntopic_id: 7bGSu7gYRDuEkZTQ2w4F_g",
        b"#\n#Nov 21\nnode.id=1\ndirectory.id: Igo74ZAZCxWJ1lxdTzs-vQ\nversion 1",
        b'{"version":0,"brokerEpoch":15}',
    )
    for kind, text in enumerate(texts):
        yield bytes([kind])
        yield bytes([kind]) + text
    yield bytes([0]) + b"0"
    yield bytes([3]) + b"version=1\nnode.id=1\ncluster.id=q\\u0061\\\n x\\ty\n!z"
    yield bytes([3]) + b"broker.id=1\n\\ud83d\\ude00=\\uzzzz"


def golden_seeds() -> Iterator[bytes]:
    for kind, names in enumerate(_KINDS):
        for _, data in golden_files(*names, max_bytes=MAX_BYTES):
            yield bytes([kind]) + data
