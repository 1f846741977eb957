"""A configuration in TOML: its tables, what stands for its placeholders, and its secrets.

``{date}``, ``{start}`` and the like in any text of the file stand for what a run is given (see
`pylog_jobs.run_window`), ``{{date}}`` for that text itself, ``${env:NAME}`` and ``${file:PATH}``
for secrets (see `pylog_jobs.secret_values`). Errors name file, table and key:

``ingest.toml: [target] has no key 'topc'; did you mean 'topic'? The keys are: directory, topic, …``
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pylog_jobs.job import UsageError
from pylog_jobs.secret_values import SecretValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_PLACEHOLDER = re.compile(r"(?<!\$)\{(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})\}")
NAME = re.compile(r"(?<!\$)\{(\w+)\}")
"""What `replace_placeholders` replaces, escaped or not."""
_DURATION = re.compile(r"[1-9][0-9]{0,8} (?:milliseconds?|seconds?|minutes?|hours?)")
_TYPES = {str: "a string", bool: "true or false", int: "a whole number", dict: "a table"}


_T = TypeVar("_T")


class ConfigTable:
    """One table, such as ``[target]``, of the file that ``place`` names.

    A key that is not among ``keys`` is an error, which names the nearest one.
    """

    def __init__(self, values: Mapping[str, object], keys: Sequence[str], place: str) -> None:
        self._values = values
        self._place = place
        for name in values:
            if name not in keys:
                near = difflib.get_close_matches(name.lower(), keys, n=1, cutoff=0.5)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                msg = f"{place} has no key {name!r}{hint} The keys are: {', '.join(keys)}"
                raise UsageError(msg)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def error(self, key: str, what: str) -> UsageError:
        """Return the error that ``key`` ``what``."""
        return UsageError(f"{self._place}: {key} {what}")

    def refusal(self, what: str) -> UsageError:
        """Return the error that the table ``what``."""
        return UsageError(f"{self._place} {what}")

    def table(self, key: str, keys: Sequence[str]) -> ConfigTable:
        """Return the table ``[key]``; one without keys if it is not there."""
        return ConfigTable(self._typed(key, dict) or {}, keys, f"{self._place}: [{key}]")

    def is_table(self, key: str) -> bool:
        """Whether the key is there and has a table for a value."""
        return isinstance(self._values.get(key), dict)

    def text(self, key: str) -> str | None:
        """Return a string, None if the key is not there; an empty one is an error."""
        value = self._typed(key, str)
        if value is not None and not value.strip():
            raise self.error(key, "is empty; leave it out if there is none")
        return value

    def number_or_text(self, key: str) -> str | None:
        """Return a string, or a whole number, a date or a time as one; None without the key."""
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, dt.date)):
            return self.text(key)
        return value.isoformat() if isinstance(value, dt.date) else str(value)

    def required_text(self, key: str) -> str:
        """Return a string that must be there."""
        value = self.text(key)
        if value is None:
            raise self.error(key, "is missing")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, or one string, as a tuple; an empty one without the key."""
        value = self._values.get(key, [])
        listed = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) and each.strip() for each in listed):
            raise self.error(key, f"is {value!r}, expected a string or a list of strings")
        return tuple(listed)

    def boolean(self, key: str) -> bool | None:
        """Return true or false, None if the key is not there."""
        return self._typed(key, bool)

    def integer(self, key: str, *, at_least: int | None = None) -> int | None:
        """Return a whole number, None if the key is not there."""
        value = self._typed(key, int)
        if value is not None and at_least is not None and value < at_least:
            raise self.error(key, f"is {value}, expected at least {at_least}")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        """Return one of ``choices``, None if the key is not there."""
        value = self.text(key)
        if value is None or value in choices:
            return value
        near = difflib.get_close_matches(value.lower(), choices, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise self.error(key, f"is {value!r}, expected one of {', '.join(choices)}{hint}")

    def options(self, key: str) -> dict[str, str]:
        """Return a table of names and values as strings, empty if the key is not there.

        A name with dots may be quoted or not: TOML makes tables in tables of ``retention.ms = 1``.
        """
        return dict(self._flattened(key, self._typed(key, dict) or {}, ""))

    def only_one(self, keys: Iterable[str]) -> str | None:
        """Return which of the keys is there, None if none is; an error if several are."""
        given = [key for key in keys if key in self]
        if len(given) > 1:
            raise UsageError(f"{self._place}: give only one of {' and '.join(given)}")
        return given[0] if given else None

    def checked(self, call: Callable[[], _T], key: str | None = None) -> _T:
        """Return what ``call`` does; a ``ValueError`` of it becomes one of this table, or key."""
        try:
            return call()
        except ValueError as error:
            place = self._place if key is None else f"{self._place}: {key}"
            raise UsageError(f"{place}: {error}") from error

    def _flattened(
        self, key: str, values: Mapping[str, object], prefix: str
    ) -> Iterable[tuple[str, str]]:
        for name, value in values.items():
            whole = f"{prefix}{name}"
            if isinstance(value, dict):
                yield from self._flattened(key, value, f"{whole}.")
            elif isinstance(value, bool):
                yield whole, str(value).lower()
            elif isinstance(value, (str, int, float)):
                yield whole, str(value)
            else:
                raise self.error(
                    f"{key}.{whole}", f"is {value!r}, expected a string, number or true or false"
                )

    def _typed(self, key: str, kind: type[_T]) -> _T | None:
        value = self._values.get(key)
        # In Python, true and false are whole numbers.
        if value is None or (isinstance(value, kind) and type(value) is kind):
            return value
        raise self.error(key, f"is {value!r}, expected {_TYPES[kind]}")

    def duration(self, key: str) -> str | None:
        """Return a duration as Spark reads it, None if the key is not there."""
        value = self.text(key)
        if value is not None and not _DURATION.fullmatch(value):
            raise self.error(
                key, f'is {value!r}, expected a duration such as "30 seconds" or "5 minutes"'
            )
        return value


@dataclass(frozen=True, slots=True)
class ConfigValues:
    """The tables of a file for one run."""

    values: Mapping[str, Any]  # with everything in its place
    shown: Mapping[str, Any]  # the same, with references in place of secrets


class ConfigFile:
    """A file in TOML, read once. Its secrets are registered where they can be hidden again."""

    def __init__(self, path: str, secrets: SecretValues | None = None) -> None:
        self.path = path
        self.secrets = SecretValues() if secrets is None else secrets
        self.raw = _toml(path)

    def placeholders(self, *, but: tuple[str, str]) -> set[str]:
        """Return the names of all placeholders, but those of one key of a table."""
        return {
            name for keys, text in _texts(self.raw) if keys != but for name in placeholders_of(text)
        }

    def for_run(self, put: Callable[[tuple[str, ...], str], str]) -> ConfigValues:
        """Return the values with each text as ``put`` has it, and secrets in their places."""
        shown = _mapped(self.raw, self._placed(put))
        resolved = _mapped(shown, self._placed(lambda _, text: self.secrets.resolve(text), ":"))
        return ConfigValues(resolved, shown)

    def with_parameters(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the values with parameters as plain text, and without secrets."""
        changed: dict[str, Any] = _mapped(
            self.raw, lambda _, text: replace_placeholders(text, parameters)
        )
        return changed

    def _placed(
        self, change: Callable[[tuple[str, ...], str], str], colon: str = ""
    ) -> Callable[[tuple[str, ...], str], str]:
        """Return what changes a text, and says of which key, if it cannot."""

        def changed(keys: tuple[str, ...], text: str) -> str:
            try:
                return change(keys, text)
            except ValueError as error:
                table, *key = keys
                raise UsageError(
                    f"{self.path}: [{table}]: {'.'.join(key)}{colon} {error}"
                ) from error

        return changed


class Placeholder(NamedTuple):
    """A placeholder in a text."""

    name: str
    start: int
    end: int


def replace_placeholders(text: str, parameters: Mapping[str, str]) -> str:
    """Return a text with values for the placeholders that have one; others stay."""
    return NAME.sub(lambda match: parameters.get(match[1], match[0]), text)


def substituted(text: str, value_of: Callable[[Placeholder], str]) -> str:
    """Return a text with values for its placeholders, and ``{name}`` for each ``{{name}}``."""

    def value(match: re.Match[str]) -> str:
        if match[2] is not None:
            return f"{{{match[2]}}}"
        return value_of(Placeholder(match[1], *match.span()))

    return _PLACEHOLDER.sub(value, text)


def placeholders_in(text: str) -> list[Placeholder]:
    """Return the placeholders of a text, in their order."""
    found = _PLACEHOLDER.finditer(text)
    return [Placeholder(each[1], *each.span()) for each in found if each[1] is not None]


def placeholders_of(text: str) -> list[str]:
    """Return the names of the placeholders of a text, in their order."""
    return [each.name for each in placeholders_in(text)]


def _texts(value: object, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, (*keys, name))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, keys)


def _mapped(
    value: Any,  # noqa: ANN401 - any value of TOML
    change: Callable[[tuple[str, ...], str], str],
    keys: tuple[str, ...] = (),
) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return change(keys, value)
    if isinstance(value, dict):
        return {name: _mapped(each, change, (*keys, name)) for name, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, change, keys) for each in value]
    return value


def _toml(path: str) -> dict[str, Any]:
    try:
        # Editors of Windows begin a file with a byte order mark.
        return tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error


def config_key(read: Callable[[ConfigTable, str], object], default: object = None) -> Any:  # noqa: ANN401 - as of `dataclasses.field`
    """Return a dataclass field that is a key of the file."""
    metadata = {"read": read}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def config_keys(table: type) -> tuple[str, ...]:
    """Return the names of the keys of a dataclass."""
    return tuple(each.name for each in fields(table) if "read" in each.metadata)


def read_table(kind: type[_T], table: ConfigTable) -> _T:
    """Return a dataclass whose fields are the keys of a table."""
    of_kind: Any = kind
    return kind(
        **{
            each.name: each.metadata["read"](table, each.name)
            for each in fields(of_kind)
            if "read" in each.metadata
        }
    )
