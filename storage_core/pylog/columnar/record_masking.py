"""Rules that put something else in the place of keys, values, headers, or parts of JSON values.

A file of rules is TOML, one table a rule::

    [[mask]]
    topics = ["users"]                      # default: all
    json_path = ["$.email", "$.items[*].iban"]
    replace = "***"                         # default: null

    [[mask]]
    header = ["user-agent"]
    replace = "***"

    [[mask]]
    key = true                              # the whole key; or value = true
    replace = "***"

A rule is about one of ``json_path``, ``header``, ``key`` and ``value``. In JSON the replacement is
any value of TOML that JSON has, and all else of the document stays as it is written. Elsewhere it
is text; without one, a header's value becomes null, while a key or a value needs one: null would
make a tombstone. Null stays null.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pylog.columnar.json_path import JsonPath, scan_places
from pylog.errors import LogDirectoryError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    Headers = Sequence[tuple[str, bytes | None]]

_PARTS = ("json_path", "header", "key", "value")
_FIELDS = ("topics", *_PARTS, "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskRule:
    """One rule; see the module.

    Attributes
    ----------
    topics
        The topics that it is for; None for all.
    part
        ``json_path``, ``header``, ``key`` or ``value``.
    names
        The paths, or the names of headers; empty for the others.
    replacement
        What takes the place; for JSON its text.
    """

    topics: frozenset[str] | None
    part: str
    names: tuple[str, ...]
    replacement: bytes | None
    paths: tuple[JsonPath, ...] = ()

    def covers(self, topic: str) -> bool:
        """Return whether the rule applies to a topic."""
        return self.topics is None or topic in self.topics


def read_mask_rules(path: str | os.PathLike[str]) -> RecordMasking:
    r"""Return the rules of a file, to be applied.

    Raises
    ------
    LogDirectoryError
        The file cannot be read.
    ValueError
        It is not TOML, or a rule is not one: the error names its number.

    Examples
    --------
    >>> rules = '[[mask]]\njson_path = ["$.email"]\nreplace = "***"'
    >>> with open("rules.toml", "w") as file:
    ...     _ = file.write(rules)
    >>> masking = pylog.jobs.read_mask_rules("rules.toml")
    >>> masking.masked_record("users", None, b'{"email": "ann@example.org", "n": 1}', ())
    (None, b'{"email": "***", "n": 1}', ())
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - kept as text
            content = tomllib.load(file)
    except OSError as error:
        reason = f"cannot read the rules: {error.strerror}"
        raise LogDirectoryError(reason, path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{path!s}: the rules are not TOML: {error}"
        raise ValueError(msg) from error
    rules = content.get("mask")
    if set(content) != {"mask"} or not isinstance(rules, list) or not rules:
        msg = f"{path!s}: expected rules, each of them a table [[mask]], and nothing else"
        raise ValueError(msg)
    return RecordMasking([_rule(each, number) for number, each in enumerate(rules, start=1)])


def _rule(fields: object, number: int) -> MaskRule:
    if not isinstance(fields, dict):
        raise _wrong(number, "is not a table [[mask]]")
    unknown = sorted(set(fields) - set(_FIELDS))
    if unknown:
        raise _wrong(number, f"has {unknown[0]!r}, expected {', '.join(_FIELDS)}")
    parts = [each for each in _PARTS if each in fields]
    if len(parts) != 1:
        raise _wrong(number, f"has {len(parts)} of {', '.join(_PARTS)}, expected one")
    [part] = parts
    topics = fields.get("topics")
    names: tuple[str, ...] = ()
    if part in ("json_path", "header"):
        names = tuple(_texts(fields[part], part, number))
    elif fields[part] is not True:
        raise _wrong(number, f"has {part} = {fields[part]!r}, expected true")
    try:
        paths = tuple(map(JsonPath.parse, names if part == "json_path" else ()))
    except ValueError as error:
        raise _wrong(number, f"has a wrong path: {error}") from error
    compared = next((each for each in paths if each.expected is not None), None)
    if compared is not None:
        raise _wrong(number, f"has a path with a comparison, {compared.text}")
    return MaskRule(
        topics=None if topics is None else frozenset(_texts(topics, "topics", number)),
        part=part,
        names=names,
        replacement=_replacement(fields, part, number),
        paths=paths,
    )


def _replacement(fields: dict[str, Any], part: str, number: int) -> bytes | None:
    given = fields.get("replace")
    if part == "json_path":
        try:
            return json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise _wrong(number, f"has a replacement that JSON does not have: {error}") from error
    if given is None and part == "header":
        return None
    if not isinstance(given, str):
        raise _wrong(number, f"has replace = {given!r}, expected text")
    return given.encode()


def _texts(given: object, name: str, number: int) -> list[str]:
    texts = given if isinstance(given, list) else [given]
    found = [each for each in texts if isinstance(each, str) and each]
    if not found or len(found) < len(texts):
        raise _wrong(number, f"has {name} = {given!r}, expected one text or several")
    return found


def _wrong(number: int, reason: str) -> ValueError:
    return ValueError(f"rule {number} {reason}")


class RecordMasking:
    """Applies rules to records. One thread.

    Attributes
    ----------
    rules
        In their order.
    not_json
        How many values, for which a rule has JSON paths, are not JSON: nothing in them is replaced.
    """

    def __init__(self, rules: Sequence[MaskRule]) -> None:
        self.rules = tuple(rules)
        self.not_json = 0

    @property
    def names_topics(self) -> bool:
        """Whether some rule is for some topics alone."""
        return any(each.topics is not None for each in self.rules)

    def masked_record(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> tuple[bytes | None, bytes | None, Headers]:
        """Return key, value and headers of a record as the rules have them."""
        for rule in self.rules:
            if not rule.covers(topic):
                continue
            match rule.part:
                case "key":
                    key = None if key is None else rule.replacement
                case "value":
                    value = None if value is None else rule.replacement
                case "header":
                    headers = _masked_headers(headers, rule)
                case _:
                    value = self._masked_json(value, rule)
        return key, value, headers

    def masked(self, batch: pa.RecordBatch, topic: str | None = None) -> pa.RecordBatch:
        """Return a record batch of a scan as the rules have it.

        Columns that it lacks are not missed; but for ``topic``, unless its rows are all of one.
        """
        if not batch.num_rows:
            return batch
        topics = [topic] * batch.num_rows
        if topic is None and self.names_topics:
            topics = batch.column("topic").to_pylist()
        for rule in self.rules:
            name = {"header": "headers", "json_path": "value"}.get(rule.part, rule.part)
            if name in batch.schema.names:
                index = batch.schema.get_field_index(name)
                field = batch.schema.field(index)
                column = batch.column(index).to_pylist()
                changed = [
                    self._masked_field(each, rule) if rule.covers(str(of)) else each
                    for of, each in zip(topics, column, strict=True)
                ]
                batch = batch.set_column(index, field, pa.array(changed, field.type))
        return batch

    def _masked_field(self, given: Any, rule: MaskRule) -> Any:  # noqa: ANN401 - of a column
        if given is None:
            return None
        if rule.part == "header":
            pairs = _masked_headers([(each["key"], each["value"]) for each in given], rule)
            return [{"key": key, "value": value} for key, value in pairs]
        return self._masked_json(given, rule) if rule.part == "json_path" else rule.replacement

    def _masked_json(self, value: bytes | None, rule: MaskRule) -> bytes | None:
        if value is None:
            return None
        try:
            text = value.decode()
            places = {
                place
                for path in rule.paths
                for place in scan_places(text, path.steps, takes_repeated=True)
            }
        except ValueError:
            self.not_json += 1
            return value
        if not places:
            return value
        parts, at = [], 0
        for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
            if start >= at:  # else it is inside of what was replaced
                parts += [text[at:start], (rule.replacement or b"null").decode()]
                at = end
        return "".join([*parts, text[at:]]).encode()


def _masked_headers(headers: Headers, rule: MaskRule) -> Headers:
    return tuple(
        (key, rule.replacement if key in rule.names and value is not None else value)
        for key, value in headers
    )
