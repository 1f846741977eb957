"""Values in place of the placeholders of a configuration, each checked by what its text is.

The placeholders of windows stand for dates and times, which no text misunderstands. A value of
``--param`` is anything: in SQL it stays one value, in a path it stays below the directory before
it, in the name of a topic it is a part of that name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pylog_jobs.config_file import Placeholder, placeholders_in, substituted
from pylog_jobs.run_window import BOOKMARK_NAMES, HOUR, WINDOW_NAMES
from pylog_jobs.sql_text import SPARK, SqlText

if TYPE_CHECKING:
    from pylog_jobs.run_window import RunWindow
    from pylog_jobs.sql_text import Dialect

_QUERY = ("source", "sql")
_SPARK_SQL = re.compile(
    r"source\.(?:sql|schema|options\.customschema)"
    r"|record\.(?:key|value|headers(?:\..*)?|timestamp|topic|partition)"
    r"|incremental\.(?:column|key)|checks\.(?:not_null|unique|conditions)",
    re.IGNORECASE,
)
_DATABASE_SQL = re.compile(
    r"source\.options\.(?:query|dbtable|preparequery|sessioninitstatement|partitioncolumn)",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"source\.path|target\.directory|trigger\.checkpoint"
    r"|source\.options\..*(?:path|location|directory|file|glob|keytab).*",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"source\.(?:format|options\.(?:subscribe(?:pattern)?|assign|topics?))", re.IGNORECASE
)
_OTHER = re.compile(r"source\.options\..*|record\.avro_schema")
_URL = re.compile(r"[A-Za-z][\w+.-]*:")
_AUTHORITY = re.compile(r"[A-Za-z][\w+.-]*://[^/]*")
_REFERENCE = re.compile(r"\$\{\w+:(?:[^{}]|\{\w+\})*\}")

_LEGAL_IN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LEGAL_IN_URL = re.compile(r"[A-Za-z0-9._:/-]+")
_LEGAL_IN_PATH = re.compile(r"[^\\*?\[\]{}%\x00-\x1f\x7f]+")
_LEGAL_IN_TEXT = re.compile(r"""[^'"`\\${}\x00-\x1f\x7f]*""")


class ParameterValues:
    """The values of one run for the texts of a file."""

    def __init__(self, window: RunWindow, dialect: Dialect) -> None:
        self._window = window
        self._values = window.values()
        self._dialect = dialect
        self.markers: dict[str, str] = {}
        """What the parameter markers of the query stand for."""
        self.has_escapes = False
        """Whether a literal of Spark's SQL has an escaped value."""

    def put(self, keys: tuple[str, ...], text: str) -> str:
        """Return the text of a key with its values; `ValueError` for one that cannot be there."""
        place = ".".join(keys)
        if keys == _QUERY:
            text = self._with_markers(text)
        references = [match.span() for match in _REFERENCE.finditer(text)]

        def value_of(found: Placeholder) -> str:
            if found.name in BOOKMARK_NAMES and (keys == _QUERY or keys[:2] == _OPTIONS):
                return text[found.start : found.end]
            value = self._value(found.name)
            if found.name not in self._window.parameters:
                return value
            try:
                if any(start < found.start < end for start, end in references):
                    return _legal(value, _LEGAL_IN_NAME, "the name of a secret")
                put = self._checked(place, text, value, found)
                return _legal(put, _NO_REFERENCE, "a text that may have secrets")
            except ValueError as error:
                raise ValueError(f"has {{{found.name}}}, which {error}") from error

        result = substituted(text, value_of)
        if _PATH.fullmatch(place) or _is_in_url(place, text):
            _ensure_no_way_up(text, result)
        return result

    def _value(self, name: str) -> str:
        if name in self._values:
            return self._values[name]
        if name == HOUR:
            raise ValueError("needs an hour; give --start and --end")
        text_itself = f"write {{{{{name}}}}} for the text itself"
        if name in BOOKMARK_NAMES:
            raise ValueError(
                f"has '{{{name}}}', the range of an incremental run, which is known in sql and "
                f"options of [source] alone; {text_itself}"
            )
        known = ", ".join(f"{{{each}}}" for each in WINDOW_NAMES)
        raise ValueError(
            f"has '{{{name}}}'; the placeholders are {known} and the names of --param; "
            f"{text_itself}"
        )

    def _with_markers(self, text: str) -> str:
        """Return a query with parameter markers for the literals that are one value each."""
        sql = SqlText(text, SPARK)
        for found in reversed(placeholders_in(text)):
            if found.name in self._window.parameters and sql.is_bindable(found.start, found.end):
                marker = f"pylog_{len(self.markers)}"
                self.markers[marker] = self._values[found.name]
                text = f"{text[: found.start - 1]} :{marker} {text[found.end + 1 :]}"
        return text

    def _checked(self, place: str, text: str, value: str, found: Placeholder) -> str:
        """Return what stands for a value in the text of a key; `ValueError` says why nothing."""
        if _SPARK_SQL.fullmatch(place):
            put = SqlText(text, SPARK).with_value(value, found.start, found.end)
            self.has_escapes |= put != value
            return put
        if _DATABASE_SQL.fullmatch(place):
            return SqlText(text, self._dialect).with_value(value, found.start, found.end)
        if _NAME.fullmatch(place):
            return _legal(value, _LEGAL_IN_NAME, "a name")
        if _PATH.fullmatch(place):
            return _part_of_path(text, value, found)
        is_whole = (found.start, found.end) == (0, len(text))
        if is_whole or not _OTHER.fullmatch(place):
            return value
        if _is_in_url(place, text):
            return _legal(value, _LEGAL_IN_URL, "a part of a URL")
        return _legal(value, _LEGAL_IN_TEXT, "a part of a longer text")


_OPTIONS = ("source", "options")
_NO_REFERENCE = re.compile(r"(?:(?!\$\{).)*", re.DOTALL)


def _legal(value: str, pattern: re.Pattern[str], what: str) -> str:
    if pattern.fullmatch(value) is None or value in (".", ".."):
        raise ValueError(f"is {value!r}: that cannot be {what}")
    return value


def _is_in_url(place: str, text: str) -> bool:
    return place.lower().endswith(("url", "uri")) or (
        _OTHER.fullmatch(place) is not None and _URL.match(text) is not None
    )


def _part_of_path(text: str, value: str, found: Placeholder) -> str:
    authority = _AUTHORITY.match(text)
    if authority is not None and found.start < authority.end():
        return _legal(value, _LEGAL_IN_NAME, "the name of a host or bucket")
    if found.start and value.startswith("/"):
        raise ValueError(f"is {value!r}: that would leave the directory before it")
    return _legal(value, _LEGAL_IN_PATH, "a part of a path")


def _ensure_no_way_up(text: str, result: str) -> None:
    """Raise if values have put more ``.`` and ``..`` into a path than it has by itself."""

    def steps(path: str) -> list[str]:
        return [each for each in re.split("[/:]", path) if each in (".", "..")]

    if len(steps(result)) > len(steps(text)):
        raise ValueError(f"would be {result!r}, which leaves the directory before a placeholder")
