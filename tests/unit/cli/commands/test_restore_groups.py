from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome


def test_positions_are_listed_and_written(
    golden_root: GoldenRoot, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source, new = golden_root.case("4.3.0/internal-logdir"), tmp_path / "new"
    planned = pylog_run("restore-groups", source, "--to", new, "--dry-run")
    assert (planned.status, new.exists()) == (0, False)
    assert planned.lines[-1] == f"3 positions for {new}; nothing was written (--dry-run)"
    done = pylog_run("restore-groups", source, "--to", new)
    assert (done.status, done.lines[-1]) == (0, f"3 positions written to {new}")
    assert "grp-late: orders-1 at offset 9" in done.lines


def test_what_is_left_out_is_named_and_a_line_that_is_no_map_refused(
    golden_root: GoldenRoot, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source, path = golden_root.case("4.3.0/internal-logdir"), tmp_path / "map.csv"
    path.write_text("orders,1,9,2\n")
    arguments = ("restore-groups", source, "--to", tmp_path / "new", "--offset-map", path)
    done = pylog_run(*arguments, "--json")
    document = json.loads(done.output)
    assert (done.status, document["isWritten"]) == (1, True)
    assert [each["offset"] for each in document["offsets"]] == [2]
    assert "left out: not in the map: grp-member in invoices-eu-0" in done.error
    path.write_text("orders\n")
    done = pylog_run(*arguments)
    assert (done.status, "line 1 is not topic" in done.error) == (2, True)
