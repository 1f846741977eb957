"""Tables of a TOML file: known keys only, each value checked, errors that name the key.

``ingest.toml: [target] has no key 'topc'; did you mean 'topic'? The keys are: directory, topic, …``
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pylog_jobs.job import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_T = TypeVar("_T")

_TYPES = {str: "a string", bool: "true or false", int: "a whole number", dict: "a table"}


class ConfigTable:
    """One table, ``[target]`` for example.

    Parameters
    ----------
    values
        As `tomllib` gives them.
    keys
        All that the table may have.
    place
        The name of the file, and of the table, for errors.

    Raises
    ------
    UsageError
        There is another key; the nearest one is named.
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

    @classmethod
    def read(cls, path: str, keys: Sequence[str]) -> ConfigTable:
        """Return the whole of a file, a table of tables.

        Raises
        ------
        UsageError
            It is not TOML, or has another key.
        OSError
            It cannot be read.
        """
        try:
            with Path(path).open("rb") as file:
                values = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            msg = f"{path} is not TOML: {error}"
            raise UsageError(msg) from error
        return cls(values, keys, path)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def error(self, key: str, what: str) -> UsageError:
        """Return the error that ``key`` ``what``."""
        return UsageError(f"{self._place}: {key} {what}")

    def table(self, key: str, keys: Sequence[str]) -> ConfigTable:
        """Return the table ``[key]``; one without keys if it is not there."""
        values = self._values.get(key, {})
        place = f"{self._place}: [{key}]"
        if not isinstance(values, dict):
            raise self._wrong_type(key, values, dict)
        return ConfigTable(values, keys, place)

    def is_table(self, key: str) -> bool:
        """Whether the key is there and has a table for a value."""
        return isinstance(self._values.get(key), dict)

    def text(self, key: str) -> str | None:
        """Return a string, None if the key is not there; an empty one is an error."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong_type(key, value, str)
        if not value.strip():
            raise self.error(key, "is empty; leave it out if there is none")
        return value

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

    def integer(self, key: str, *, at_least: int | None = None) -> int | None:
        """Return a whole number, None if the key is not there."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong_type(key, value, int)
        if at_least is not None and value < at_least:
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
        values = self._values.get(key, {})
        if not isinstance(values, dict):
            raise self._wrong_type(key, values, dict)
        return dict(self._flattened(key, values, ""))

    def only_one(self, keys: Iterable[str]) -> str | None:
        """Return which of the keys is there, None if none is; an error if several are."""
        given = [key for key in keys if key in self]
        if len(given) > 1:
            msg = f"{self._place}: give only one of {' and '.join(given)}"
            raise UsageError(msg)
        return given[0] if given else None

    def checked(self, call: Callable[[], _T], key: str | None = None) -> _T:
        """Return what ``call`` does; a ``ValueError`` of it becomes one of this table, or key."""
        try:
            return call()
        except ValueError as error:
            place = self._place if key is None else f"{self._place}: {key}"
            msg = f"{place}: {error}"
            raise UsageError(msg) from error

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

    def _wrong_type(self, key: str, value: object, expected: type) -> UsageError:
        return self.error(key, f"is {value!r}, expected {_TYPES[expected]}")
