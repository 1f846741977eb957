"""The data file of a run: machine, load, targets and tables, as JSON.

``make bench`` writes it to ``build/bench.json``. A run that may be published also becomes
``docs/benchmarks.json``, from which the benchmark page, its charts and the table in the README are
made. A run is not published if the machine was busy when it started, or if parts are missing.

Nothing here needs what the benchmarks need, so that the pages can be made without it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import Machine

FORMAT = 1
PUBLISHED = "docs/benchmarks.json"
MOST_LOAD_PER_CORE = 0.25
"""Load average of the minute before the start, a core: more slows what is measured."""

Document = dict[str, Any]
Value = str | float | list[float] | None


class UnknownFigureError(KeyError):
    """The data file has no such table, row or column."""


def is_loaded(machine: Machine, load: Sequence[float]) -> bool:
    """Tell whether a machine is too busy for figures that others may read."""
    return load[0] > MOST_LOAD_PER_CORE * machine["cores"]


def load_refusal(machine: Machine, load: Sequence[float]) -> str:
    """Return why a run under this load is not published."""
    cores, most = machine["cores"], MOST_LOAD_PER_CORE * machine["cores"]
    return (
        f"the load average of the last minute is {load[0]:.1f} on {cores} cores, and figures are "
        f"published from at most {most:g}: stop what else runs, or measure without --publish"
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """A data file that was read."""

    document: Document

    @classmethod
    def read(cls, path: Path) -> "Figures":
        """Read a data file; raise `ValueError` if it has another format."""
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("format") != FORMAT:
            msg = f"{path}: the format is {document.get('format')!r}, expected {FORMAT}"
            raise ValueError(msg)
        return cls(document)

    def get(self, title: str, wanted: str, *row: object) -> Value:
        """Return the cell of a table's column, in the one row that has these values."""
        tables = [each for each in self.document["tables"] if each["title"] == title]
        for table in tables:
            rows = [each for each in table["rows"] if all(value in each for value in row)]
            if wanted in table["columns"] and len(rows) == 1:
                value: Value = rows[0][table["columns"].index(wanted)]
                return value
        msg = f"no single figure {wanted!r} of {row} in the table {title!r}"
        raise UnknownFigureError(msg)

    def median(self, title: str, wanted: str, *row: object) -> float:
        """Return the median of such a cell."""
        value = self.get(title, wanted, *row)
        if isinstance(value, list):
            return value[1]
        if isinstance(value, (int, float)):
            return value
        msg = f"{wanted!r} of {row} in the table {title!r} is {value!r}, not a number"
        raise UnknownFigureError(msg)


def text_of(document: Document) -> str:
    """Return a data file's text: a row a line, so that a change is one line in a comparison."""

    def dumped(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    head = {key: value for key, value in document.items() if key not in ("targets", "tables")}
    lines = ["{"]
    lines += [f" {dumped(key)}: {dumped(value)}," for key, value in head.items()]
    lines.append(' "targets": [')
    lines.append(",\n".join(f"  {dumped(each)}" for each in document["targets"]))
    lines += [" ],", ' "tables": [']
    tables = []
    for table in document["tables"]:
        rows = ",\n".join(f"    {dumped(row)}" for row in table["rows"])
        head_of = {key: value for key, value in table.items() if key != "rows"}
        tables.append(f'  {dumped(head_of)[:-1]}, "rows": [\n{rows}\n  ]}}')
    lines += [",\n".join(tables), " ]", "}"]
    return "\n".join(lines) + "\n"
