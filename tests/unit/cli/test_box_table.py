"""Tables in boxes: what fits, what is left out, and that it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.cli.box_table import BoxColumn, box_lines
from pylog.cli.commands import sql
from pylog.cli.style import OutputTraits, width_of
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import write_partition
from tests.support.terminal import in_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

NUMBER = BoxColumn("n", "int64", is_right=True)
TEXT = BoxColumn("text", "varchar", is_right=False)


def test_a_box_has_names_types_and_rows() -> None:
    rows: list[list[str | None]] = [
        ["1", "a"],
        ["20", None],
        [None, "\u65e5\u672c\u8a9e\u65e5\u672c"],
    ]
    assert list(box_lines([NUMBER, TEXT], rows, OutputTraits(80))) == [
        "\u250c\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u252c\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2510",
        "\u2502   n   \u2502    text    \u2502",
        "\u2502 int64 \u2502  varchar   \u2502",
        "\u251c\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u253c\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2524",
        "\u2502     1 \u2502 a          \u2502",
        "\u2502    20 \u2502 NULL       \u2502",
        "\u2502  NULL \u2502 \u65e5\u672c\u8a9e\u65e5\u672c \u2502",
        "\u2514\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2534\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2518",
        "3 rows  2 columns",
    ]


@pytest.mark.parametrize(
    ("total", "shown", "closing"),
    [
        (0, [], "0 rows  1 column"),
        (40, [*range(40)], "40 rows  1 column"),
        (41, [*range(20), *range(21, 41)], "41 rows (40 shown)  1 column"),
        (100_000, [*range(20), *range(99_980, 100_000)], "100000 rows (40 shown)  1 column"),
    ],
)
def test_of_many_rows_those_in_the_middle_are_left_out(
    total: int, shown: list[int], closing: str
) -> None:
    *lines, last = box_lines([NUMBER], ([str(at)] for at in range(total)), OutputTraits(80))
    cells = [line.strip("\u2502 ") for line in lines[4:-1]]
    assert [int(cell) for cell in cells if cell != "\u00b7"] == shown
    assert cells.count("\u00b7") == (3 if total > 40 else 0)
    assert last == closing


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("columns", [1, 2, 5, 17, 60])
def test_a_table_fits_the_terminal_whatever_its_columns(width: int, columns: int) -> None:
    headings = [BoxColumn(f"column {at}" * 3, "varchar", is_right=False) for at in range(columns)]
    rows = [[f"{at}" + "\u65e5" * 50 for at in range(columns)]]
    *lines, last = box_lines(headings, rows, OutputTraits(width))
    assert {width_of(line) for line in lines} == {width_of(lines[0])}
    assert width_of(lines[0]) <= width
    assert "0\u65e5" in lines[4]
    cells = lines[4].count("\u2502") - 1
    if "\u2502 \u2026 \u2502" in lines[4]:  # which stands for the others
        assert cells - 1 < columns
        assert f"{columns} columns ({cells - 1} shown)" in last
        assert f"{columns - 1}\u65e5" in lines[4]
    else:
        assert cells == columns
        assert "shown" not in last


def test_colours_are_those_of_a_terminal_that_has_some() -> None:
    lines = list(box_lines([NUMBER], [[None]], OutputTraits(80, has_styles=True)))
    assert lines[1] == "\u2502   \x1b[1mn\x1b[0m   \u2502"
    assert lines[2] == "\u2502 \x1b[2mint64\x1b[0m \u2502"
    assert lines[4] == "\u2502  \x1b[2mNULL\x1b[0m \u2502"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    records = [Stored(0, 1, b"k\x1b[2J", b"\xe2\x80\xaevalue"), Stored(1, 1, None, None)]
    write_partition(tmp_path, {0: [batch_v2(records)]})
    return tmp_path


def test_a_query_in_a_terminal_is_a_box(logs: Path) -> None:
    query = 'SELECT "offset", key, value, headers FROM records'
    lines = in_terminal(100, "sql", logs, query, NO_COLOR="1").splitlines()
    heads = [cell.strip() for cell in lines[2].strip("\u2502").split("\u2502")]
    assert heads[:3] == ["int64", "blob", "blob"]
    assert heads[3].startswith("struct(key varchar, value blob")
    assert [cell.strip() for cell in lines[4].split("\u2502")[1:4]] == [
        "0",
        r"k\x1b[2J",
        r"\u202evalue",
    ]
    assert [cell.strip() for cell in lines[5].split("\u2502")[1:4]] == ["1", "NULL", "NULL"]
    assert lines[-1] == "2 rows  4 columns"


@pytest.mark.parametrize("option", ["--csv", "--json"])
def test_csv_and_json_are_the_same_in_a_terminal(
    logs: Path, option: str, pylog_run: Callable[..., Outcome]
) -> None:
    query = 'SELECT "offset" FROM records'
    assert in_terminal(100, "sql", logs, query, option) == (
        pylog_run("sql", logs, query, option).output.decode()
    )


def test_a_terminal_without_such_characters_gets_a_plain_table(logs: Path) -> None:
    output = in_terminal(100, "sql", logs, 'SELECT "offset" FROM records', PYTHONIOENCODING="ascii")
    assert output == "offset\n     0\n     1\n2 rows\n"


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("1::tinyint", "int8"),
        ("1.5::decimal(10, 2)", "decimal(10,2)"),
        ("1.5::double", "double"),
        ("true", "boolean"),
        ("'x'", "varchar"),
        ("'x'::blob", "blob"),
        ("date '2026-11-27'", "date"),
        ("time '12:30:00'", "time"),
        ("timestamp '2026-11-27'", "timestamp"),
        ("timestamptz '2026-11-27'", "timestamp with time zone"),
        ("interval '1 day'", "interval"),
        ("[[1]]", "int32[][]"),
        ("{'a': 'x', 'b': [true]}", "struct(a varchar, b boolean[])"),
        ("map {'a': 1}", "map(varchar, int32)"),
    ],
)
def test_types_are_called_as_duckdbs_shell_calls_them(expression: str, kind: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    schema = duckdb.sql(f"SELECT {expression} AS x").to_arrow_table().schema
    assert sql._box_column(schema.field(0)).kind == kind
