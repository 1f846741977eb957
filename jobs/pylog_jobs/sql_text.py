"""Values inside of SQL text: each stays one value, whatever it holds.

In a literal, the quotes (and, where the database knows them, backslashes) of a value are escaped.
Elsewhere a value must be a number, a date, a time or a plain name. Where literals end is a matter
of the database, so that a text is split by its rules; what a database is not known to treat in one
way is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE, COMMENT, LITERAL, QUOTED = "code", "comment", "literal", "quoted"
"""What a part of a text is; ``QUOTED`` is a name in quotes, and whatever has rules of its own."""

_PLAIN = re.compile(
    r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*",
    re.ASCII,
)
_SPECIAL = re.compile(r"""['"`\\$\[\]\x00-\x1f\x7f]""")
"""What ends or changes a literal or a quoted name somewhere."""
_QUOTES = frozenset("'\"`$[&")
_WORD = re.compile(r"[^\W\d][\w$]*")
_NUMBER = re.compile(r"\d[\w.]*")
_DOLLARS = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_ENDS_OF_COMMENTS = re.compile(r"/\*|\*/")
_TYPES = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "INTERVAL"})
_OF_SPARK = re.compile(r"""['"\\$]""")
_BEFORE_VALUES = re.compile(
    r"(?:[=<>(,+*/%|-]|\b(?:select|where|and|or|not|r?like|ilike|then|else|when|between|on))\s*\Z",
    re.IGNORECASE,
)
"""What a value of SQL stands after, and no name, type or part of a statement of its own."""
_AMBIGUOUS = re.compile(r"[\\`#$\[]|/\*|--(?!\s)|\w'")
"""What databases read in different ways."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where literals, names and comments end in a database's SQL."""

    name: str
    quotes_with_backslashes: str = ""  # in which a backslash escapes
    escape_prefixes: frozenset[str] = frozenset()  # of literals in which it does, too
    raw_prefixes: frozenset[str] = frozenset()  # of literals that end at the next quote
    has_brackets: bool = False  # [name]
    has_backticks: bool = False
    has_dollar_quotes: bool = False
    has_alternative_quotes: bool = False  # q'[…]'
    has_nested_comments: bool = False
    line_comment: re.Pattern[str] = re.compile(r"--[^\r\n]*")
    is_known: bool = True


SPARK = Dialect(
    "Spark",
    quotes_with_backslashes="'\"",
    raw_prefixes=frozenset({"R"}),
    has_backticks=True,
    has_dollar_quotes=True,
    has_nested_comments=True,
    line_comment=re.compile(r"--(?:\\\n|[^\r\n])*"),
)
POSTGRESQL = Dialect(
    "PostgreSQL",
    escape_prefixes=frozenset({"E"}),
    has_dollar_quotes=True,
    has_nested_comments=True,
)
UNKNOWN = Dialect("this database", is_known=False)
_MYSQL = Dialect(
    "MySQL",
    quotes_with_backslashes="'\"",
    has_backticks=True,
    line_comment=re.compile(r"(?:--(?=\s|\Z)|#)[^\r\n]*"),
)
_DIALECTS = {
    "postgresql": POSTGRESQL,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite": Dialect("SQLite", has_brackets=True, has_backticks=True),
    "sqlserver": Dialect("SQL Server", has_brackets=True, has_nested_comments=True),
    "oracle": Dialect("Oracle", has_alternative_quotes=True),
    "h2": Dialect("H2", has_dollar_quotes=True, has_nested_comments=True),
    **{name: Dialect(name) for name in ("derby", "db2", "hsqldb")},
}


def dialect_of_url(url: str) -> Dialect:
    """Return the dialect of the database that a JDBC URL names."""
    scheme, _, rest = url.strip().partition(":")
    return _DIALECTS.get(rest.partition(":")[0].lower(), UNKNOWN) if scheme == "jdbc" else UNKNOWN


def literal_value(expression: str) -> str | None:
    """Return the value of an expression of Spark's that is one literal without escapes."""
    text = expression.strip()
    parts = SqlText(text, SPARK).parts
    is_literal = [(each.kind, each.prefix) for each in parts] == [(LITERAL, "")]
    return text[1:-1] if is_literal and _SPECIAL.search(text[1:-1]) is None else None


class TextPart(NamedTuple):
    """A part of a text, from ``start`` to ``end`` (exclusive)."""

    kind: str
    start: int
    end: int
    quote: str = ""
    prefix: str = ""  # of a literal, in capitals, directly before it
    has_backslashes: bool = False
    is_whole: bool = True  # it is not cut off by the end of the text


class SqlText:
    """A text of SQL, split into its parts."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.parts = list(_parts(text, dialect))

    def part_at(self, position: int) -> TextPart:
        """Return the part in which a position is."""
        return next(each for each in self.parts if each.start <= position < each.end)

    def is_bindable(self, start: int, end: int) -> bool:
        """Whether ``start`` to ``end`` is all of a literal that a parameter marker may replace."""
        part = self.part_at(start)
        if part.kind != LITERAL or part.prefix or (part.start + 1, part.end - 1) != (start, end):
            return False
        if self.text[part.end :].lstrip()[:1] in ("'", '"'):
            return False  # Spark makes one of literals that follow each other
        before = _BEFORE_VALUES.search(self.text[: part.start])
        return before is not None and self.part_at(before.start()).kind == CODE

    def with_value(self, value: str, start: int, end: int) -> str:
        """Return what stands for a value in place of ``start`` to ``end``.

        `ValueError`: it has no place there; the text says why.
        """
        part = self.part_at(start)
        if part.is_whole and part.kind == LITERAL:
            return self._in_literal(value, part, start)
        if part.is_whole and part.kind == QUOTED:
            if _SPECIAL.search(value) is None and value.strip():
                return value
            msg = f"stands in {part.quote}, where {value!r} is neither a name nor a plain text"
            raise ValueError(msg)
        before, after = self.text[:start][-1:], self.text[end:][:1]
        is_alone = before not in _QUOTES and after not in _QUOTES and before + value[:1] != "--"
        if not is_alone or _PLAIN.fullmatch(value) is None:
            raise ValueError(
                f"stands outside of a quoted literal, where {value!r} cannot: it is no number, "
                "date, time or plain name"
            )
        return value

    def _is_escaped(self, position: int) -> bool:
        before = self.text[:position]
        return (len(before) - len(before.rstrip("\\"))) % 2 == 1

    def _in_literal(self, value: str, part: TextPart, start: int) -> str:
        is_special = _SPECIAL.search(value) is not None
        if is_special and part.has_backslashes and self._is_escaped(start):
            raise ValueError(f"stands after a backslash, which {value!r} cannot")
        if not self.dialect.is_known and (is_special or _AMBIGUOUS.search(self.text)):
            if _PLAIN.fullmatch(value) is not None:
                return value
            msg = f"is {value!r}, and how {self.dialect.name} reads that in a literal is not known"
            raise ValueError(msg)
        if not is_special:
            return value
        if "\0" in value or part.prefix not in {"", "N", *_TYPES, *self.dialect.escape_prefixes}:
            msg = f"is {value!r}, which cannot be in a literal {part.prefix}'…'"
            raise ValueError(msg)
        if self.dialect is SPARK:
            # Spark may take doubled quotes for two literals, and puts a variable in place of ${…}.
            return _OF_SPARK.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
        if part.has_backslashes:
            value = value.replace("\\", 2 * "\\")
        elif "\\" in value and self.dialect is POSTGRESQL:
            raise ValueError(
                f"is {value!r}, and what its backslash means depends on the server's "
                "standard_conforming_strings; write E'…'"
            )
        return value.replace("'", "''")


def _parts(text: str, dialect: Dialect) -> Iterator[TextPart]:
    position = code = 0
    word = ""  # directly before the position
    while position < len(text):
        part = _comment(text, position, dialect) or _quoted(text, position, word, dialect)
        if part is not None:
            if code < position:
                yield TextPart(CODE, code, position)
            yield part
            position = code = part.end
            word = ""
        elif match := _WORD.match(text, position):
            word, position = match[0].upper(), match.end()
        else:
            is_of_word = word == "U" and text[position] == "&"
            word = "U&" if is_of_word else ""
            match = _NUMBER.match(text, position)
            position = position + 1 if match is None else match.end()
    if code < len(text):
        yield TextPart(CODE, code, len(text))


def _comment(text: str, start: int, dialect: Dialect) -> TextPart | None:
    if match := dialect.line_comment.match(text, start):
        return TextPart(COMMENT, start, match.end())
    if not text.startswith("/*", start):
        return None
    depth = 1
    for match in _ENDS_OF_COMMENTS.finditer(text, start + 2):
        if match[0] == "*/":
            depth -= 1
        elif dialect.has_nested_comments:
            depth += 1
        if not depth:
            return TextPart(COMMENT, start, match.end())
    return TextPart(COMMENT, start, len(text), is_whole=False)


def _quoted(text: str, start: int, prefix: str, dialect: Dialect) -> TextPart | None:
    quote = text[start]
    if dialect.has_dollar_quotes and (match := _DOLLARS.match(text, start)):
        return _up_to(text, match.end(), match[0], TextPart(QUOTED, start, 0, "$"))
    if dialect.has_alternative_quotes and quote == "'" and prefix in ("Q", "NQ"):
        opening = text[start + 1 : start + 2]
        closing = {"[": "]", "{": "}", "(": ")", "<": ">"}.get(opening, opening)
        return _up_to(text, start + 2, closing + quote, TextPart(QUOTED, start, 0, "q'"))
    if quote == "[" and dialect.has_brackets:
        return _up_to_quote(text, TextPart(QUOTED, start, 0, "]"))
    if quote not in "'\"" + "`" * dialect.has_backticks:
        return None
    # What double quotes mean is a matter of settings, so that nothing is escaped in them.
    is_raw = prefix in dialect.raw_prefixes
    has_backslashes = not is_raw and (
        quote in dialect.quotes_with_backslashes or (prefix in dialect.escape_prefixes)
    )
    kind = LITERAL if quote == "'" and not is_raw else QUOTED
    part = TextPart(kind, start, 0, quote, prefix, has_backslashes)
    return _up_to(text, start + 1, quote, part) if is_raw else _up_to_quote(text, part)


def _up_to(text: str, start: int, end: str, part: TextPart) -> TextPart:
    found = text.find(end, start)
    if found < 0:
        return part._replace(end=len(text), is_whole=False)
    return part._replace(end=found + len(end))


def _up_to_quote(text: str, part: TextPart) -> TextPart:
    """Return the part with its end: a quote that is neither doubled nor escaped."""
    position = part.start + 1
    while position < len(text):
        if part.has_backslashes and text[position] == "\\":
            position += 2
        elif text[position] != part.quote:
            position += 1
        elif text.startswith(2 * part.quote, position):
            position += 2
        else:
            return part._replace(end=position + 1)
    return part._replace(end=len(text), is_whole=False)
