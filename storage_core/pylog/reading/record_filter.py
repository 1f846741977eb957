"""Which records of a range are wanted: the predicates that a reader evaluates by itself.

They are exact: what passes is what the same predicate keeps of a full scan. Planning skips whole
partitions and ranges of offsets; `pylog.reading.filtered_decode` applies the predicates to batches
and records. A test of content (values, headers) decides by a whole value, and says which bytes the
record has at the least, so that batches without them need not be decoded. A filter is made,
combined and pickled without NumPy and Arrow.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from pylog.lazy_modules import LazyModule
from pylog.model import Timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.columnar import json_path as json_paths
    from pylog.columnar.json_path import Needle
    from pylog.model import TopicPartition

    Bytes = str | bytes
    Headers = list[dict[str, object]] | None
    Patterns = Bytes | re.Pattern[str] | re.Pattern[bytes]
else:
    json_paths = LazyModule("pylog.columnar.json_path")  # which few filters need


_SPECIAL = frozenset(".^$*+?{}[]\\|()")
_OPTIONAL = frozenset("*?{")  # of what stands before
_OTHER_MEANING = re.IGNORECASE | re.VERBOSE


def required_text(pattern: str, flags: int) -> str:
    """Return the longest such text that is easily seen; empty if there is none."""
    if flags & _OTHER_MEANING or "|" in pattern or "(?" in pattern:
        return ""
    runs, run = [""], ""
    at = 0
    while at < len(pattern):
        character = pattern[at]
        following = pattern[at + 1 : at + 2]
        if character == "\\" and following in _SPECIAL:
            character, at = following, at + 1  # a character after all
            following = pattern[at + 1 : at + 2]
        elif character in _SPECIAL:
            runs.append(run)
            run, at = "", _end_of_special(pattern, at)
            continue
        if following in _OPTIONAL:
            runs.append(run)
            run = ""
        elif following == "+":
            runs.append(run + character)
            run = ""
        else:
            run += character
        at += 1
    return max([*runs, run], key=len)


def _end_of_special(pattern: str, at: int) -> int:
    """Return where what begins with a special character ends."""
    match pattern[at]:
        case "\\":
            return _end_of_escape(pattern, at)
        case "[":
            return _end_of_class(pattern, at)
        case "(":
            return _end_of_group(pattern, at)
        case "{":
            end = pattern.find("}", at)
            return len(pattern) if end < 0 else end + 1
    return at + 1


def _end_of_escape(pattern: str, at: int) -> int:
    """Return where an escape ends, with whatever digits belong to it."""
    end = at + 2
    while end < len(pattern) and (pattern[end].isalnum() or pattern[end] == "{"):
        end += 1  # of \x41, \u0041 and \12; what follows \d is skipped with it
        if pattern[end - 1] == "{":
            return _end_of_special(pattern, end - 1)
    return end


def _end_of_class(pattern: str, at: int) -> int:
    at += 1
    if pattern[at : at + 1] == "^":
        at += 1
    at += 1  # a bracket that closes is a member if it comes first
    if pattern[at - 1 : at] == "\\":
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _end_of_group(pattern: str, at: int) -> int:
    at += 1
    while at < len(pattern) and pattern[at] != ")":
        match pattern[at]:
            case "\\":
                at += 2
            case "[":
                at = _end_of_class(pattern, at)
            case "(":
                at = _end_of_group(pattern, at)
            case _:
                at += 1
    return at + 1


_REPLACED = "\ufffd"
"""What a header's name has in the place of bytes that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class Contains:
    """The key or the value has these bytes in it. Null never passes."""

    content: bytes
    column: str = "value"

    @property
    def required(self) -> tuple[tuple[bytes, ...], ...]:
        """The bytes themselves."""
        return ((self.content,),) if self.content else ()

    def holds(self, value: object) -> bool:
        """Return whether a value contains the bytes."""
        return isinstance(value, bytes) and self.content in value

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where they are."""
        pattern = re.escape(self.content.decode("utf-8", "surrogateescape"))
        return (found.span() for found in re.finditer(pattern, text))


@dataclass(frozen=True, slots=True)
class Matches:
    """A regular expression is found in the key or the value, by Python's rules."""

    pattern: re.Pattern[str] | re.Pattern[bytes]
    column: str = "value"

    @property
    def required(self) -> tuple[tuple[bytes, ...], ...]:
        """Text that every match has in it."""
        pattern = self.pattern.pattern
        codec = "utf-8" if isinstance(pattern, str) else "latin-1"
        text = pattern if isinstance(pattern, str) else pattern.decode(codec)
        text = required_text(text, self.pattern.flags)
        try:
            return ((text.encode(codec, "surrogateescape"),),) if text else ()
        except UnicodeEncodeError:
            return ()  # a surrogate that stands for no byte: no text has it

    def holds(self, value: object) -> bool:
        """Return whether the pattern is found in a value."""
        if not isinstance(value, bytes):
            return False
        if isinstance(self.pattern.pattern, str):
            value = value.decode("utf-8", "surrogateescape")
        return self.pattern.search(value) is not None  # type: ignore[arg-type]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where it is found; nowhere in text if it is one of bytes."""
        if isinstance(self.pattern.pattern, str):
            yield from (found.span() for found in self.pattern.finditer(text))


@dataclass(frozen=True, slots=True)
class IsTombstone:
    """The value is null."""

    column: ClassVar[str] = "value"
    required: ClassVar[tuple[tuple[bytes, ...], ...]] = ()

    def holds(self, value: object) -> bool:
        """Return whether a value is null."""
        return value is None

    def spans(self, text: str) -> Iterable[tuple[int, int]]:
        """Yield nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class HasHeader:
    """The record has a header of this name and, unless it is None, of this value."""

    name: str
    value: bytes | None = None

    column: ClassVar[str] = "headers"

    @property
    def required(self) -> tuple[tuple[bytes, ...], ...]:
        """The name and the value."""
        name = b"" if _REPLACED in self.name else self.name.encode("utf-8", "surrogatepass")
        return tuple((each,) for each in (name, self.value) if each)

    def holds(self, headers: object) -> bool:
        """Whether one of a record's headers has the name, and the value if one is given."""
        return isinstance(headers, list) and any(
            each["key"] == self.name and (self.value is None or each["value"] == self.value)
            for each in headers
        )

    def spans(self, text: str) -> Iterable[tuple[int, int]]:
        """Yield nothing: it is in neither key nor value."""
        return ()


ContentTest: TypeAlias = "Contains | Matches | IsTombstone | HasHeader | json_paths.JsonPath"
"""What decides about one column of a record, ``key``, ``value`` or ``headers``.

``required`` are groups of needles: a record that passes has one of each group in the column's
bytes. ``spans`` are those parts of a key or value that are why it passes.
"""

_MOST_KEYS_LOOKED_FOR = 16
"""More keys are compared with those of decoded records alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """A conjunction of predicates; None stands for no restriction.

    Attributes
    ----------
    topics, partitions
        One name or number, or several.
    min_offset, max_offset
        Both inclusive.
    min_timestamp, max_timestamp
        Milliseconds, both inclusive. A record without a timestamp has -1. A `Timestamp` or a
        datetime with a time zone is accepted as well.
    keys
        One key as bytes, or several; records with one of them pass, and records without a key
        never do.
    content
        Tests of keys, values and headers, all of which hold; `matching` makes them.
    excluded
        Filters; a record that one of them passes does not pass. They are about timestamps, keys and
        content, not about places.
    trusts_batch_timestamps
        Whether the largest timestamp in a batch's header is believed, so that batches before
        ``min_timestamp`` are not read. Brokers write it right; a batch of another program may hold
        later records than it says, which would be left out. By default the records decide, but for
        batches with LogAppendTime, in which the header's timestamp is that of each record.
    timestamp_disorder
        The most milliseconds by which a record is earlier than one before it, which the user
        vouches for: reading then ends as soon as no later record can pass. None if unknown.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    min_offset: int | None = None
    max_offset: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    keys: frozenset[bytes] | None = None
    content: tuple[ContentTest, ...] | None = None
    excluded: tuple[RecordFilter, ...] = ()
    timestamp_disorder: int | None = None
    trusts_batch_timestamps: bool = False

    def __post_init__(self) -> None:
        for name, kind in (("topics", str), ("partitions", int), ("keys", bytes)):
            object.__setattr__(self, name, _members(name, getattr(self, name), kind))
        for name in ("min_offset", "max_offset", "timestamp_disorder"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        for name in ("min_timestamp", "max_timestamp"):
            value = _milliseconds(getattr(self, name), is_last=name == "max_timestamp")
            object.__setattr__(self, name, _number(name, value))
        for each in self.excluded:
            if not each.needs_records or each.is_about_places:
                msg = (
                    "an excluded filter has timestamps, keys or content, and no topics, "
                    f"partitions or offsets; got {each}"
                )
                raise ValueError(msg)

    @classmethod
    def matching(  # noqa: PLR0913 - keyword-only, one for each thing a user may say
        cls,
        *,
        key: Bytes | Iterable[Bytes] | None = None,
        key_contains: Bytes | Iterable[Bytes] = (),
        key_regex: Patterns | Iterable[Patterns] = (),
        value_contains: Bytes | Iterable[Bytes] = (),
        value_regex: Patterns | Iterable[Patterns] = (),
        header: str | Iterable[str] = (),
        json_path: str | Iterable[str] = (),
        tombstones: bool = False,
        ignore_case: bool = False,
        invert: bool = False,
    ) -> RecordFilter:
        """Return the filter for records of such keys, values and headers.

        Parameters
        ----------
        key
            The key is exactly this, or one of these; text stands for its UTF-8.
        key_contains, value_contains
            The key or value has these bytes in it; of several, all. Null has none.
        key_regex, value_regex
            This regular expression of Python is found in the key or value: one of ``str`` in its
            text in UTF-8, one of ``bytes`` in its bytes. Of several, all.
        header
            ``NAME``: there is a header of that name; ``NAME=VALUE``: one with that name and that
            value in UTF-8. Of several, all.
        json_path
            The value is JSON and has something at this path, or something equal, unequal, less or
            greater there, see `pylog.columnar.json_path`. Of several, all.
        tombstones
            Only records whose value is null.
        ignore_case
            ``key_contains``, ``key_regex``, ``value_contains`` and ``value_regex`` find upper and
            lower case alike, as `re.IGNORECASE` does. ``key``, ``header`` and ``json_path`` stay
            exact.
        invert
            Only records that do not pass all of these.

        Returns
        -------
        RecordFilter
            For the argument ``where`` of `pylog.scan`; ``&`` combines it with others.

        Raises
        ------
        ValueError
            A regular expression or JSON path is not one, or ``invert`` has nothing to invert.

        Examples
        --------
        >>> where = pylog.RecordFilter.matching(json_path="$.status=returned")
        >>> pylog.scan("kafka/intact", topics="orders", where=where).to_table().num_rows
        7
        """
        texts = (("key", key_contains), ("value", value_contains))
        patterns = (("key", key_regex), ("value", value_regex))
        content: tuple[ContentTest, ...] = (
            *(
                _contains(each, column, ignore_case=ignore_case)
                for column, given in texts
                for each in _several(given)
            ),
            *(
                Matches(_as_pattern(each, ignore_case=ignore_case), column)
                for column, given in patterns
                for each in _several(given)
            ),
            *map(_header_test, _several(header)),
            *map(json_paths.JsonPath.parse, _several(json_path)),
            *([IsTombstone()] if tombstones else []),
        )
        where = cls(
            keys=None if key is None else frozenset(map(_as_bytes, _several(key))),
            content=content or None,
        )
        if not invert:
            return where
        if not where.needs_records:
            msg = "invert says which records are not wanted: give a key, text or anything else"
            raise ValueError(msg)
        return cls(excluded=(where,))

    def __and__(self, other: RecordFilter) -> RecordFilter:
        return RecordFilter(
            topics=_common(self.topics, other.topics),
            partitions=_common(self.partitions, other.partitions),
            min_offset=_highest(self.min_offset, other.min_offset),
            max_offset=_lowest(self.max_offset, other.max_offset),
            min_timestamp=_highest(self.min_timestamp, other.min_timestamp),
            max_timestamp=_lowest(self.max_timestamp, other.max_timestamp),
            keys=_common(self.keys, other.keys),
            content=((self.content or ()) + (other.content or ())) or None,
            excluded=self.excluded + other.excluded,
            timestamp_disorder=_lowest(self.timestamp_disorder, other.timestamp_disorder),
            trusts_batch_timestamps=self.trusts_batch_timestamps or other.trusts_batch_timestamps,
        )

    @property
    def needs_records(self) -> bool:
        """Whether the filter depends on records, and not only on their places."""
        predicates = self.min_timestamp, self.max_timestamp, self.keys
        return predicates != (None, None, None) or self.needs_content

    @property
    def needs_content(self) -> bool:
        """Whether it depends on more of a record than its timestamp and key."""
        return bool(self.content or self.excluded)

    @property
    def is_about_places(self) -> bool:
        """Whether the filter tests topics, partitions or offsets."""
        places = self.topics, self.partitions, self.min_offset, self.max_offset
        return places != (None, None, None, None)

    @property
    def is_about_records(self) -> bool:
        """Whether a row without offset, timestamp and key cannot pass."""
        return self.needs_records or (self.min_offset, self.max_offset) != (None, None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a record that the filter depends on, besides its place."""
        names = []
        if (self.min_timestamp, self.max_timestamp) != (None, None):
            names.append("timestamp")
        if self.keys is not None:
            names.append("key")
        names += [test.column for test in self.content or ()]
        names += [name for each in self.excluded for name in each.columns]
        return tuple(dict.fromkeys(names))

    @property
    def required_bytes(self) -> tuple[tuple[Needle, ...], ...]:
        """Groups of needles: a record that passes has one of each group in its bytes."""
        groups: list[tuple[Needle, ...]] = [
            group for test in self.content or () for group in test.required
        ]
        if self.keys and all(self.keys) and len(self.keys) <= _MOST_KEYS_LOOKED_FOR:
            groups.append(tuple(sorted(self.keys)))
        return tuple(groups)

    def spans(self, column: str, text: str) -> Iterator[tuple[int, int]]:
        """Yield what of a record's key or value is why it passes, to show it.

        Parameters
        ----------
        column
            ``key`` or ``value``.
        text
            What the column has, decoded as UTF-8 with ``surrogateescape``.

        Yields
        ------
        tuple of int
            Where a part of ``text`` begins and ends (exclusive), in no order; parts may overlap or
            be empty. What is excluded has none.
        """
        if column == "key" and self.keys is not None:
            yield 0, len(text)
        for test in self.content or ():
            if test.column == column:
                with suppress(ValueError):  # not JSON
                    yield from test.spans(text)

    def covers(self, topic_partition: TopicPartition) -> bool:
        """Return whether records of a partition can pass the filter."""
        return (self.topics is None or topic_partition.topic in self.topics) and (
            self.partitions is None or topic_partition.partition in self.partitions
        )

    def clip(self, start_offset: int, end_offset: int) -> tuple[int, int]:
        """Return the part of ``[start, end)`` whose records can pass; empty if none."""
        if self.min_offset is not None:
            start_offset = max(start_offset, self.min_offset)
        if self.max_offset is not None:
            end_offset = min(end_offset, self.max_offset + 1)
        return start_offset, max(start_offset, end_offset)


def conjunction(one: RecordFilter | None, other: RecordFilter | None) -> RecordFilter | None:
    """Return the filter that passes what both pass; None stands for one that passes all."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def check_filter(where: object) -> None:
    """Raise `TypeError` for what is neither None nor a filter, with what to write instead."""
    if where is None or isinstance(where, RecordFilter):
        return
    msg = (
        f"where is a {type(where).__name__}, expected a pylog.RecordFilter, such as "
        "pylog.RecordFilter(min_offset=10, keys=b'k1'), or the text of a condition on decoded "
        "fields, such as 'value.id = 7'. To filter by anything else, filter what "
        "the scan gives, as in scan.to_table().filter(...)"
    )
    raise TypeError(msg)


def _members(name: str, given: object, kind: type) -> frozenset[object] | None:
    """Return one value or several as a set."""
    if given is None:
        return None
    values = frozenset(given) if isinstance(given, Iterable) else frozenset((given,))
    if isinstance(given, (str, bytes)):
        values = frozenset((given,))
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            hint = ": keys are bytes, text becomes such by .encode()" if kind is bytes else ""
            msg = f"{name} has {value!r}, expected {kind.__name__}{hint}"
            raise ValueError(msg)  # noqa: TRY004 - as all arguments that make no sense
    return values


def _number(name: str, given: object) -> int | None:
    if given is None:
        return None
    try:
        return operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        is_time = name.endswith("timestamp")
        what = "milliseconds, a Timestamp or a datetime" if is_time else "a whole number"
        msg = f"{name} is {given!r}, expected {what}"
        raise ValueError(msg) from None


def _milliseconds(given: object, *, is_last: bool) -> object:
    """Return an instant as the first or last millisecond that is not on its other side."""
    if isinstance(given, dt.datetime):
        within = is_last and given.microsecond % 1000 != 0
        return Timestamp.of(given).milliseconds - within
    return given.milliseconds if isinstance(given, Timestamp) else given


def _several(given: Any) -> list[Any]:  # noqa: ANN401 - the values are looked at elsewhere
    """Return one value or several as a list; text and bytes are one."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return list(given)
    return [given]


def _as_bytes(text: Bytes) -> bytes:
    # What was not UTF-8 on a command line is taken as the bytes that it was.
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def _contains(text: Bytes, column: str, *, ignore_case: bool) -> ContentTest:
    if ignore_case:
        return Matches(_as_pattern(re.escape(text), ignore_case=True), column)  # type: ignore[type-var]
    return Contains(_as_bytes(text), column)


def _as_pattern(given: Patterns, *, ignore_case: bool) -> re.Pattern[str] | re.Pattern[bytes]:
    try:
        if not ignore_case:
            return re.compile(given)
        if isinstance(given, re.Pattern):
            return re.compile(given.pattern, given.flags | re.IGNORECASE)
        return re.compile(given, re.IGNORECASE)
    except re.error as error:
        msg = f"{given!r} is not a regular expression: {error}"
        raise ValueError(msg) from error


def _header_test(text: str) -> ContentTest:
    name, equals, value = text.partition("=")
    return HasHeader(name, _as_bytes(value) if equals else None)


_Member = TypeVar("_Member")


def _common(
    one: frozenset[_Member] | None, other: frozenset[_Member] | None
) -> frozenset[_Member] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _highest(*bounds: int | None) -> int | None:
    return max((bound for bound in bounds if bound is not None), default=None)


def _lowest(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)
