"""Values inside of SQL: whatever a value is, it stays one literal, or is refused."""

from __future__ import annotations

import sqlite3
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pylog_jobs.sql_text import SPARK, UNKNOWN, Dialect, SqlText, dialect_of_url

VALUE = "{x}"
POSTGRESQL = dialect_of_url("jdbc:postgresql://db/shop")
MYSQL = dialect_of_url("jdbc:mysql://db/shop")
SQLITE = dialect_of_url("jdbc:sqlite:/data/shop.db")
SQL_SERVER = dialect_of_url("jdbc:sqlserver://db")
ORACLE = dialect_of_url("jdbc:oracle:thin:@//db/shop")

HOSTILE = st.text(st.sampled_from("'\"`\\$;-/*[]{}() \n\taxE1=\0é"), max_size=12)


def put(text: str, value: str, dialect: Dialect) -> str:
    start = text.index(VALUE)
    return (
        text[:start]
        + SqlText(text, dialect).with_value(value, start, start + len(VALUE))
        + text[start + len(VALUE) :]
    )


def literal_of_backslashes(text: str) -> tuple[str, str]:
    """Read a literal as MySQL and Spark do; return its value, and what follows it."""
    assert text[0] == "'"
    found, position = "", 1
    while True:
        if text.startswith("\\u", position):
            found += chr(int(text[position + 2 : position + 6], 16))
            position += 6
        elif text[position] == "\\":
            found += text[position + 1]
            position += 2
        elif text.startswith("''", position):
            found += "'"
            position += 2
        elif text[position] == "'":
            return found, text[position + 1 :]
        else:
            found += text[position]
            position += 1


@given(value=HOSTILE, before=st.sampled_from(["", "it''s ", "a -- b ", '"', "/*"]))
@example(value="x' OR '1'='1", before="")
def test_a_database_reads_the_value_that_was_given(value: str, before: str) -> None:
    try:
        text = put(f"SELECT '{before}{VALUE}', 7 -- it's {VALUE[1]}", value, SQLITE)
    except ValueError:
        assert "\0" in value
        return
    [row] = sqlite3.connect(":memory:").execute(text).fetchall()
    assert row == (before.replace("''", "'") + value, 7)


@given(value=HOSTILE)
@example(value="\\' OR 1=1 -- ")
@example(value="\\")
def test_a_literal_with_backslashes_is_the_value(value: str) -> None:
    for dialect in (MYSQL, SPARK):
        try:
            text = put(f"'{VALUE}' AND y", value, dialect)
        except ValueError:
            assert "\0" in value
            continue
        if dialect is SPARK:  # two literals, for some versions; variables of Spark
            assert text.count("'") == 2
            assert "${" not in text
        assert literal_of_backslashes(text) == (value, " AND y")


@given(value=HOSTILE)
def test_what_stands_outside_of_literals_is_one_word(value: str) -> None:
    for template in (f"a = {VALUE} + 1", f"/* {VALUE} */ a", f"a -- {VALUE}\n b"):
        for dialect in (SPARK, POSTGRESQL, MYSQL, SQL_SERVER, ORACLE, UNKNOWN):
            try:
                put(template, value, dialect)
            except ValueError:
                continue
            assert set(value) <= set(string.ascii_letters + string.digits + "-+.: _"), value


@given(value=HOSTILE)
@pytest.mark.parametrize(
    ("template", "dialect"),
    [
        (f'"{VALUE}"', SPARK),
        (f"`{VALUE}`", SPARK),
        (f"r'{VALUE}'", SPARK),
        (f"$$ {VALUE} $$", POSTGRESQL),
        (f"$a$ {VALUE} $a$", POSTGRESQL),
        (f"U&'{VALUE}'", POSTGRESQL),
        (f"q'[{VALUE}]'", ORACLE),
        (f"[{VALUE}]", SQL_SERVER),
        (f"X'{VALUE}'", MYSQL),
        (f"_utf8'{VALUE}'", MYSQL),
        (f"'{VALUE}'", UNKNOWN),
        (f"'a\\{VALUE}'", SPARK),
    ],
)
def test_nothing_is_escaped_where_rules_are_others(
    template: str, dialect: Dialect, value: str
) -> None:
    try:
        text = put(template, value, dialect)
    except ValueError:
        return
    assert text == template.replace(VALUE, value)
    assert not set(value) & set("'\"`\\$[]\0")


@pytest.mark.parametrize(
    ("text", "value", "dialect", "expected"),
    [
        (f"a = '{VALUE}'", "O'Neill", POSTGRESQL, "a = 'O''Neill'"),
        (f"a = E'{VALUE}'", "a\\b'c", POSTGRESQL, "a = E'a\\\\b''c'"),
        (f"a = N'{VALUE}'", "O'Neill", SQL_SERVER, "a = N'O''Neill'"),
        (f"a = '{VALUE}'", "a\\b", SQL_SERVER, "a = 'a\\b'"),
        (f"a = DATE'{VALUE}'", "it's", SPARK, "a = DATE'it\\u0027s'"),
        (f"FROM {VALUE} t", "shop.orders", UNKNOWN, "FROM shop.orders t"),
        (f"a > {VALUE}", "-1.5e3", UNKNOWN, "a > -1.5e3"),
        (f"a > {VALUE}", "2026-11-22", UNKNOWN, "a > 2026-11-22"),
        (f"'{VALUE}'", "New York", UNKNOWN, "'New York'"),
        # Quotes within comments, names and dollar quotes begin no literal.
        (f"-- it's\na = '{VALUE}'", "a b", POSTGRESQL, "-- it's\na = 'a b'"),
        (f"/* it's /* ' */ ' */ '{VALUE}'", "a b", POSTGRESQL, "/* it's /* ' */ ' */ 'a b'"),
        (f"/* it's /* */ '{VALUE}'", "a b", MYSQL, "/* it's /* */ 'a b'"),
        (f"\"it's\" '{VALUE}'", "a b", POSTGRESQL, "\"it's\" 'a b'"),
        (f"[it's] '{VALUE}'", "a b", SQL_SERVER, "[it's] 'a b'"),
        (f"$x$ it's $x$ '{VALUE}'", "a b", POSTGRESQL, "$x$ it's $x$ 'a b'"),
        (f"a$x$ = '{VALUE}'", "a b", POSTGRESQL, "a$x$ = 'a b'"),
        (f"# it's\n'{VALUE}'", "a b", MYSQL, "# it's\n'a b'"),
        (f"q'[it's]' || '{VALUE}'", "a b", ORACLE, "q'[it's]' || 'a b'"),
        (f"r'\\' || '{VALUE}'", "a b", SPARK, "r'\\' || 'a b'"),
    ],
)
def test_a_value_is_put_where_it_stands(
    text: str, value: str, dialect: Dialect, expected: str
) -> None:
    assert put(text, value, dialect) == expected


@pytest.mark.parametrize(
    ("text", "value", "dialect", "message"),
    [
        (f"a = {VALUE}", "1 OR 1=1", POSTGRESQL, "stands outside of a quoted literal"),
        (f"a = {VALUE}", "x;", POSTGRESQL, "stands outside of a quoted literal"),
        (f"a = {VALUE}", "", POSTGRESQL, "stands outside of a quoted literal"),
        (f"1 -{VALUE}", "-1", POSTGRESQL, "stands outside of a quoted literal"),  # a comment
        (f"{VALUE}'a\\'", "E", POSTGRESQL, "stands outside of a quoted literal"),  # a prefix
        (f"$${VALUE}", "a", POSTGRESQL, "stands outside of a quoted literal"),
        (f"'{VALUE}", "a b", POSTGRESQL, "stands outside of a quoted literal"),  # no end
        (f"'{VALUE}'", "a\\b", POSTGRESQL, "standard_conforming_strings; write E'"),
        (f"'{VALUE}'", "O'Neill", UNKNOWN, "how this database reads that in a literal is not"),
        (f"'\\' || '{VALUE}'", "a b", UNKNOWN, "how this database reads that in a literal"),
        (f"'{VALUE}'", "a'\0", SPARK, "cannot be in a literal"),
        (f"'\\{VALUE}'", "'", SPARK, "stands after a backslash"),
    ],
)
def test_what_cannot_be_put_is_refused(
    text: str, value: str, dialect: Dialect, message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("'", ".")):
        put(text, value, dialect)


@pytest.mark.parametrize(
    ("text", "is_bindable"),
    [
        (f"a = '{VALUE}'", True),
        (f"a IN ('b', '{VALUE}')", True),
        (f"a LIKE '{VALUE}' AND b", True),
        (f"SELECT '{VALUE}' AS x", True),
        (f"a = 'x{VALUE}'", False),
        (f"a = DATE '{VALUE}'", False),
        (f"a = DATE'{VALUE}'", False),
        (f"t VERSION AS OF '{VALUE}'", False),
        (f"a = '{VALUE}' 'b'", False),
        (f"a = 'b' '{VALUE}'", False),
        (f'a = "{VALUE}"', False),
        (f"a = {VALUE}", False),
        (f"/* = */ '{VALUE}'", False),
        (f"-- = '{VALUE}'", False),
    ],
)
def test_a_marker_replaces_a_whole_literal_that_is_a_value(text: str, *, is_bindable: bool) -> None:
    start = text.index(VALUE)
    assert SqlText(text, SPARK).is_bindable(start, start + len(VALUE)) is is_bindable


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("jdbc:postgresql://db/shop", "PostgreSQL"),
        ("jdbc:mariadb://db/shop", "MySQL"),
        ("jdbc:oracle:thin:@db", "Oracle"),
        ("jdbc:h2:mem:x", "H2"),
        ("jdbc:clickhouse://db", "this database"),
        ("postgresql://db", "this database"),
        ("", "this database"),
    ],
)
def test_a_url_names_the_dialect(url: str, name: str) -> None:
    assert dialect_of_url(url).name == name
