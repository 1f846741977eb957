"""Names and texts that Java reads in its own way: digits, blanks, numbers that are too large.

A harm is as in `tests.support.faults.partitions`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support.faults.partitions import QUORUM_STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.faults.partitions import DirectoryHarm, Harm, Harmed

ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_INT32, _INT64 = 2**31 - 1, 2**63 - 1

# ---- names of files

_NAMES = (
    "99999999999999999999.log",
    f"{_INT64:020d}.log",
    f"{_INT64 + 1:020d}.log",
    "-1.log",
    "+60.log",
    "060.log",
    "0" * 25 + "60.log",
    "00000000000000000060".translate(ARABIC) + ".log",
    "00000000000000000060.copy.log",
    "00000000000000000060.log.log",
    "00000000000000000060 .log",
    "+.log",
    ".log",
    "00000000000000000060_.log",
    "99999999999999999999.index",
    f"{_INT64:020d}.index",
    "-1.index",
    "61.timeindex",
    "00000000000000000061.copy.txnindex",
    "copy.index",
    "99999999999999999999.snapshot",
    "copy.snapshot",
    "61.snapshot",
    "-1.snapshot",
    "00000000000000000061.copy.snapshot",
    "99999999999999999999.log.deleted",
    "copy.log.deleted",
    "copy.deleted",
    "99999999999999999999.log.cleaned",
    "copy.cleaned",
    "copy.swap",
    "99999999999999999999.log.swap",
    "61.index.swap",
    "copy.kafka",
    ".hidden",
)
"""Of files of no byte beside a log of three segments, at offsets 0, 60 and 120."""

_FOLDERS = (
    "copy.log",
    "00000000000000000061.log",
    "99999999999999999999.log",
    "00000000000000000061.index",
    "copy.snapshot",
    "copy.cleaned",
    "copy.swap",
    "00000000000000000000.log.swap",
    "00000000000000000000.log.deleted",
    "backup",
)
_REPLACED = (
    "00000000000000000060.log",
    "00000000000000000060.index",
    "00000000000000000060.timeindex",
    "00000000000000000150.snapshot",
    "partition.metadata",
    "leader-epoch-checkpoint",
)
"""Of files that a folder takes the place of."""


def _file(name: str) -> Callable[[Harmed], object]:
    return lambda harmed: (harmed.directory / name).write_bytes(b"")


def _folder(name: str) -> Callable[[Harmed], object]:
    def harm(harmed: Harmed) -> None:
        path = harmed.directory / name
        path.unlink(missing_ok=True)
        path.mkdir()

    return harm


def _of_names() -> Iterator[Harm]:
    for name in _NAMES:
        yield f"an empty file named {name}", _file(name)
    for name in _FOLDERS:
        yield f"a folder named {name}", _folder(name)
    for name in _REPLACED:
        yield f"a folder in the place of {name}", _folder(name)


# ---- texts of a partition

_METADATA: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "with a space behind the id": lambda text: text + " ",
    "with a tab behind the id": lambda text: text + "\t",
    "with a line behind the id": lambda text: text + "\nsee: ticket",
    "with an empty line behind the id": lambda text: text + "\n\n",
    "with a space behind the version": lambda text: text.replace("0\n", "0 \n"),
    "with a space before the version": lambda text: " " + text,
    "with an empty line first": lambda text: "\n" + text,
    "with a byte order mark": lambda text: "\ufeff" + text,
    "with two spaces before its values": lambda text: text.replace(": ", ":  "),
    "with tabs before its values": lambda text: text.replace(": ", ":\t"),
    "with wide spaces before its values": lambda text: text.replace(": ", ":\u2003"),
    "without spaces before its values": lambda text: text.replace(": ", ":"),
    "with lines of Windows": lambda text: text.replace("\n", "\r\n"),
    "with other names": lambda text: text.replace("version", "v").replace("topic_id", "id"),
    "of version +0": lambda text: text.replace(" 0\n", " +0\n"),
    "of version 00": lambda text: text.replace(" 0\n", " 00\n"),
    "of version 7": lambda text: text.replace(" 0\n", " 7\n"),
    "of version -1": lambda text: text.replace(" 0\n", " -1\n"),
    "of version 2^31": lambda text: text.replace(" 0\n", f" {_INT32 + 1}\n"),
    "of a version in Arabic digits": lambda text: text.replace(" 0\n", " 0\n".translate(ARABIC)),
    "of two versions": lambda text: text.replace(" 0\n", " 0: 1\n"),
    "with padding behind the id": lambda text: text + "==",
    "with half a padding behind the id": lambda text: text + "=",
    "with other last bits of the id": lambda text: text[:-1] + _next_digit(text[-1]),
    "whose id is short": lambda text: text[:-1],
    "whose id is of 18 bytes": lambda text: text + "AA",
    "whose id has a plus": lambda text: text[:-3] + "+" + text[-2:],
}
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def _next_digit(digit: str) -> str:
    """Return another digit of base64 whose four bits above are the same: the last two count not."""
    return _BASE64[_BASE64.index(digit) ^ 1]


_EPOCHS = {
    "with a space behind each line": "0\n1\n0 0 \n",
    "with a space before a line": "0\n1\n 0 0\n",
    "with two spaces": "0\n1\n0  0\n",
    "with a tab": "0\n1\n0\t0\n",
    "with a wide space": "0\n1\n0\u20030\n",
    "with a space behind the version": "0 \n1\n0 0\n",
    "with a space behind the count": "0\n1 \n0 0\n",
    "with an empty line behind": "0\n1\n0 0\n\n",
    "with lines of Windows": "0\r\n1\r\n0 0\r\n",
    "with plus signs": "+0\n+1\n+0 +0\n",
    "with zeros in front": "00\n001\n000 00000000000000000000000000\n",
    "in Arabic digits": "0\n1\n0 0\n".translate(ARABIC),
    "with the highest epoch": f"0\n2\n0 0\n{_INT32} 60\n",
    "with the highest epoch at the end": f"0\n2\n0 0\n{_INT32} 150\n",
    "with an epoch of 2^31": f"0\n2\n0 0\n{_INT32 + 1} 60\n",
    "with the highest offset": f"0\n2\n0 0\n1 {_INT64}\n",
    "with an offset of 2^63": f"0\n2\n0 0\n1 {_INT64 + 1}\n",
    "with a negative epoch": "0\n1\n-1 0\n",
    "with a negative offset": "0\n1\n0 -1\n",
    "with a negative count": "0\n-1\n",
    "with one version alone": "0\n",
    "of three columns": "0\n1\n0 0 0\n",
}


def _of_partition_texts() -> Iterator[Harm]:
    for what, change in _METADATA.items():

        def harm(harmed: Harmed, change: Callable[[str], str] = change) -> None:
            path = harmed.directory / "partition.metadata"
            path.write_bytes(change(path.read_text()).encode())

        yield f"partition.metadata {what}", harm
    for what, text in _EPOCHS.items():

        def epochs(harmed: Harmed, text: str = text) -> None:
            (harmed.directory / "leader-epoch-checkpoint").write_bytes(text.encode())

        yield f"leader epochs {what}", epochs


PARTITION_TEXT_HARMS: tuple[Harm, ...] = (*_of_names(), *_of_partition_texts())

# ---- texts of a log directory

_META: dict[str, Callable[[str], str]] = {
    "with a space behind the cluster id": lambda text: re.sub("(cluster.id=.*)", r"\1 ", text),
    "with a space before the cluster id": lambda text: text.replace("cluster.id=", "cluster.id = "),
    "with a tab behind the cluster id": lambda text: re.sub("(cluster.id=.*)", r"\1\t", text),
    "with a space behind the node id": lambda text: text.replace("node.id=1", "node.id=1 "),
    "with a space behind the version": lambda text: re.sub("(version=.*)", r"\1 ", text),
    "with a space behind the directory id": lambda text: re.sub("(directory.id=.*)", r"\1 ", text),
    "with padding behind the directory id": lambda text: re.sub("(directory.id=.*)", r"\1==", text),
    "with a short directory id": lambda text: re.sub("(directory.id=.*).", r"\1", text),
    "with a node id of +1": lambda text: text.replace("node.id=1", "node.id=+1"),
    "with a node id of 01": lambda text: text.replace("node.id=1", "node.id=01"),
    "with a node id in Arabic digits": lambda text: text.replace("node.id=1", "node.id=\\u0661"),
    "with a node id of -1": lambda text: text.replace("node.id=1", "node.id=-1"),
    "of version +1": lambda text: text.replace("version=1", "version=+1"),
    "of version 01": lambda text: text.replace("version=1", "version=01"),
    "of version 3": lambda text: text.replace("version=1", "version=3"),
    "with a colon": lambda text: text.replace("node.id=", "node.id : "),
    "with an escape": lambda text: text.replace("node.id", "node\\.id"),
    "with a wrong escape": lambda text: text + "note=\\u00zz\n",
    "with lines of Windows": lambda text: text.replace("\n", "\r\n"),
    "with the node id twice": lambda text: text + "node.id=7\n",
    "without a node id": lambda text: re.sub("node.id=.*\n", "", text),
    "without a cluster id": lambda text: re.sub("cluster.id=.*\n", "", text),
    "without a version": lambda text: re.sub("version=.*\n", "", text),
    "without a line end": lambda text: text.rstrip("\n"),
    "of NULs behind": lambda text: text + "\0" * 8,
}

_OFFSETS = {
    "with a space behind a line": "0\n1\nharm 0 150 \n",
    "with a space before a line": "0\n1\n harm 0 150\n",
    "with two spaces": "0\n1\nharm  0 150\n",
    "with a wide space": "0\n1\nharm\u20030 150\n",
    "with a space behind the version": "0 \n1\nharm 0 150\n",
    "with a space behind the count": "0\n1 \nharm 0 150\n",
    "with an empty line behind": "0\n1\nharm 0 150\n\n",
    "with plus signs": "+0\n+1\nharm +0 +150\n",
    "in Arabic digits": "0\n1\nharm 0 150\n".translate(ARABIC),
    "with an offset of 2^63": f"0\n1\nharm 0 {_INT64 + 1}\n",
    "with a partition of 2^31": f"0\n1\nharm {_INT32 + 1} 150\n",
    "with a negative offset": "0\n1\nharm 0 -1\n",
    "with a negative partition": "0\n1\nharm -5 150\n",
    "with a partition twice": "0\n2\nharm 0 60\nharm 0 150\n",
    "of bytes that are no text": "0\n1\nharm 0 150\n\udcff",
}
_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
_CLEAN_SHUTDOWN = {
    "empty": b"",
    "NULs": bytes(20),
    "of a text": b"see ticket",
    "of a list": b"[1]",
    "with an epoch of text": b'{"version":0,"brokerEpoch":"x"}',
    "with an epoch of 2^64": b'{"version":0,"brokerEpoch":18446744073709551616}',
    "with a negative epoch": b'{"version":0,"brokerEpoch":-5}',
    "nested deep": b"[" * 5000,
}
_QUORUM_STATE: dict[str, Callable[[str], str]] = {
    "with an epoch of text": lambda text: text.replace('"leaderEpoch":1', '"leaderEpoch":"1"'),
    "with an epoch of 2^31": lambda text: text.replace(
        '"leaderEpoch":1', '"leaderEpoch":2147483648'
    ),
    "with the highest epoch": lambda text: text.replace(
        '"leaderEpoch":1', '"leaderEpoch":2147483647'
    ),
    "with an epoch of 1.5": lambda text: text.replace('"leaderEpoch":1', '"leaderEpoch":1.5'),
    "with a negative epoch": lambda text: text.replace('"leaderEpoch":1', '"leaderEpoch":-1'),
    "with a leader of null": lambda text: text.replace('"leaderId":1', '"leaderId":null'),
    "with a voted id of text": lambda text: text.replace('"votedId":-1', '"votedId":"-1"'),
    "with a short directory id": lambda text: text.replace("AAAAAAAAAAAAAAAAAAAAAA", "AAAA"),
    "with a directory id of null": lambda text: text.replace('"AAAAAAAAAAAAAAAAAAAAAA"', "null"),
    "with another field": lambda text: text.replace("{", '{"note":1,'),
    "with a version of text": lambda text: text.replace(":1}", ':"1"}'),
    "with a version of 1.0": lambda text: text.replace(":1}", ":1.0}"),
    "with a space first": lambda text: " " + text,
    "with a field twice": lambda text: text.replace("{", '{"leaderId":7,'),
    "with single quotes": lambda text: text.replace('"', "'"),
    "with a comma behind": lambda text: text.replace("}", ",}"),
    "of a list": lambda text: f"[{text}]",
    "of a byte order mark": lambda text: "\ufeff" + text,
}

_DIRECTORIES = (
    "other-5".translate(ARABIC),
    "other-+5",
    "other-005",
    "other--5",
    "other-2147483648",
    "other-",
    "-5",
    "other",
    "other.5-delete",
    "other-5.x-delete",
    "other-5.x-future",
    "other-5-stray",
    "oth er-5",
    "öther-5",
    ".trash",
    "lost+found",
)


def _written(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda directory: (directory / name).write_bytes(data)


def _changed(name: str, change: Callable[[str], str]) -> Callable[[Path], object]:
    def harm(directory: Path) -> None:
        path = directory / name
        path.write_bytes(change(path.read_text()).encode())

    return harm


def _new_folder(name: str) -> Callable[[Path], object]:
    return lambda directory: (directory / name).mkdir()


def _folder_instead(name: str) -> Callable[[Path], object]:
    def harm(directory: Path) -> None:
        path = directory / name
        path.unlink(missing_ok=True)
        path.mkdir()
        (path / "note").write_bytes(b"")

    return harm


def _of_log_directories() -> Iterator[DirectoryHarm]:
    for what, change in _META.items():
        yield f"meta.properties {what}", _changed("meta.properties", change)
    for name in _CHECKPOINTS:
        for what, text in _OFFSETS.items():
            yield f"{name} {what}", _written(name, text.encode(errors="surrogateescape"))
    for what, data in _CLEAN_SHUTDOWN.items():
        yield f"clean shutdown file {what}", _written(".kafka_cleanshutdown", data)
    for what, change in _QUORUM_STATE.items():
        data = change(QUORUM_STATE).encode()
        yield f"quorum-state {what}", _written("__cluster_metadata-0/quorum-state", data)
    for name in _DIRECTORIES:
        yield f"a folder named {name}", _new_folder(name)
    for name in (".kafka_cleanshutdown", ".lock", "meta.properties", *_CHECKPOINTS):
        yield f"a folder in the place of {name}", _folder_instead(name)


DIRECTORY_TEXT_HARMS: tuple[DirectoryHarm, ...] = tuple(_of_log_directories())
