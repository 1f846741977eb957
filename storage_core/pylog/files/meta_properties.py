r"""``meta.properties``: whose log directory this is.

A Java properties file, in ISO 8859-1, keys in any order; brokers write a ``#`` line and a date
line first::

    #
    #Sat Nov 21 00:12:06 UTC 2026
    node.id=1
    directory.id=Igo74ZAZCxWJ1lxdTzs-vQ
    version=1
    cluster.id=qM6VaBEQIIV4rb6KS_2csw

``version`` (0 if missing)
    0: ZooKeeper brokers, ``broker.id`` and ``cluster.id`` may be there. 1: KRaft, ``node.id`` and
    ``cluster.id`` must be. 2: KRaft, and the cluster's metadata has its id (KIP-1262).
``directory.id``
    A UUID in base64url, since 3.7; optional in both versions.

Source: MetaProperties, MetaPropertiesVersion (KIP-631, KIP-858; Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError
from pylog.files.checkpoint_file import read_text_file, split_lines
from pylog.files.java_numbers import parse_integer, shorten
from pylog.files.partition_metadata import parse_uuid

if TYPE_CHECKING:
    import os
    import uuid
    from collections.abc import Iterator


# Java properties files: a key and a value a line, both text.
#
# A line whose first visible character is ``#`` or ``!`` is a comment. A key ends at the first
# unescaped ``=``, ``:`` or blank. A backslash escapes the next character (``\t \n \r \f`` and
# ``\uXXXX`` mean what they mean in Java), at a line's end it joins the next line, whose leading
# blanks are dropped. Files are in ISO 8859-1.
#
# Source: java.util.Properties.load.


ENCODING = "iso-8859-1"

_BLANKS = " \t\f"
_COMMENT_MARKS = ("#", "!")
_KEY_AND_VALUE = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)


class JavaProperty(NamedTuple):
    """The value of a key, and the line where it stands."""

    value: str
    line: int  # the number of the line that it begins in, from 1


def parse_java_properties(text: str) -> dict[str, JavaProperty]:
    r"""Return the properties in ``text``; of a key that occurs twice, the last one."""
    properties: dict[str, JavaProperty] = {}
    for number, line in _logical_lines(text):
        match = _KEY_AND_VALUE.fullmatch(line)
        if match is not None:  # always: every part may be empty
            try:
                properties[_unescape(match[1])] = JavaProperty(_unescape(match[2]), number)
            except ValueError as error:
                msg = f"line {number}: {error}"
                raise ValueError(msg) from error
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that holds a property, continuation lines joined to it, with its number."""
    parts: list[str] = []
    first = 0
    for number, natural_line in enumerate(split_lines(text), start=1):
        line = natural_line.lstrip(_BLANKS)
        is_begun = any(parts)  # a backslash alone begins nothing
        if not is_begun and (not line or line.startswith(_COMMENT_MARKS)):
            parts = []
            continue
        first = first if is_begun else number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            parts.append(line[:-1])
            continue
        yield first, "".join([*parts, line])
        parts = []
    if any(parts):
        yield first, "".join(parts)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    unescaped = _ESCAPE.sub(_replace_escape, text)
    # Two \u escapes can be the halves of one character; a single half becomes U+FFFD.
    return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _replace_escape(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped == "u":
        msg = f"{shorten(match.string)} has a \\u without four hexadecimal digits"
        raise ValueError(msg)
    if len(escaped) > 1:
        return chr(int(escaped[1:], 16))
    return _ESCAPED.get(escaped, escaped)


_STRIPPED = "".join(map(chr, range(ord(" ") + 1)))  # as Java's trim
_VERSION_ZOOKEEPER = 0
_VERSION_KRAFT = 1
KRAFT_VERSIONS = (_VERSION_KRAFT, 2)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class MetaProperties(NamedTuple):
    """Content of a ``meta.properties`` file.

    ``node_id`` is ``node.id`` of version 1 and ``broker.id`` of version 0. What the file does not
    say is None.
    """

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: uuid.UUID | None

    @property
    def is_empty(self) -> bool:
        """Whether the file names no node, no cluster and no directory."""
        return self.node_id is None and self.cluster_id is None and self.directory_id is None


def read_meta_properties(path: str | os.PathLike[str]) -> MetaProperties:
    """Return the content of a ``meta.properties`` file."""
    text = read_text_file(path, ENCODING)
    try:
        properties = parse_java_properties(text)
        return _meta_properties({key: each.value for key, each in properties.items()})
    except ValueError as error:
        reason = f"meta.properties is malformed: {error}"
        raise CorruptCheckpointError(reason, path) from error


def _meta_properties(properties: dict[str, str]) -> MetaProperties:
    # Of all values, Kafka strips the version alone.
    version = parse_integer(properties.get("version", "0").strip(_STRIPPED), 16)
    if version not in {_VERSION_ZOOKEEPER, *KRAFT_VERSIONS}:
        msg = f"version {version} is unknown, expected 0, 1 or 2"
        raise ValueError(msg)
    node_id_key = "node.id" if version in KRAFT_VERSIONS else "broker.id"
    required = {_VERSION_KRAFT: (node_id_key, "cluster.id"), 2: (node_id_key,)}
    for key in required.get(version, ()):
        if key not in properties:
            msg = f"version {version} requires {key}, which is missing"
            raise ValueError(msg)
    node_id = properties.get(node_id_key)
    directory_id = properties.get("directory.id")
    return MetaProperties(
        version,
        None if node_id is None else parse_integer(node_id, 32),
        properties.get("cluster.id"),
        None if directory_id is None else parse_uuid(directory_id),
    )
