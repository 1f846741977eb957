from __future__ import annotations

import io
import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.cli.main import run
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition
from tests.unit.admin.coordinated import MINUTE, coordinated, data
from tests.unit.admin.test_transactions import NOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome

CASE = "4.3.0/internal-logdir"


def test_open_transactions_have_their_age_and_whose_they_are(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    case = golden_root.case(CASE)
    done = pylog_run("transactions", case, "--now", "2026-11-21T00:20:00Z")
    assert done.status == 0
    assert [line.split() for line in done.lines] == [
        [
            *("TOPIC", "PARTITION", "PRODUCER", "STATE", "FIRST", "LAST", "STARTED"),
            *("OPEN", "FOR", "TRANSACTIONAL", "ID", "COORDINATOR"),
        ],
        [
            *("__consumer_offsets", "1", "2/0", "open", "22", "22", "2026-11-21T00:18:41Z"),
            *("1m", "18s", "A-tx-z", "Ongoing"),
        ],
        [
            *("orders", "1", "2/0", "open", "45", "48", "2026-11-21T00:18:41Z"),
            *("1m", "18s", "A-tx-z", "Ongoing"),
        ],
        ["2", "open,", "6", "committed,", "6", "aborted,", "in", "4", "of", "8", "partitions"],
    ]


def test_an_overdue_transaction_is_a_finding(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    arguments = (golden_root.case(CASE), "--now", "2026-11-21T00:20:00Z", "--max-timeout", "1m")
    done = pylog_run("transactions", *arguments)
    assert done.status == 1
    assert [line.split()[-1] for line in done.lines[:3]] == ["NOTE", "overdue", "overdue"]


def test_all_of_them_are_listed_where_that_is_asked_for(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    case = golden_root.case(CASE)
    done = pylog_run("transactions", case, "--all", "--topic", "orders", "--json")
    document = json.loads(done.output)
    assert document["totals"] == {"committed": 3, "open": 1}
    assert [(each["state"], each["markerOffset"]) for each in document["transactions"]] == [
        ("open", None),
        ("committed", 49),
        ("committed", 54),
        ("committed", 59),
    ]


def test_partitions_are_chosen_by_number(
    golden_root: GoldenRoot, pylog_run: Callable[..., Outcome]
) -> None:
    arguments = (golden_root.case(CASE), "--topic", "orders", "--threads", "1", "--partition")
    assert pylog_run("transactions", *arguments, "0").lines == [
        "0 open, 3 committed, 0 aborted, in 1 of 1 partition"
    ]
    assert pylog_run("transactions", *arguments, "1").lines[1].split()[:2] == ["orders", "1"]


def test_without_transactions_only_the_sums_are_printed(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [batch_v2(plain_records(0, 2))]})
    done = pylog_run("transactions", tmp_path)
    assert (done.status, done.lines) == (0, ["0 open, 0 committed, 0 aborted, in 0 of 1 partition"])


@pytest.mark.parametrize(
    ("options", "rows", "columns"), [((), 3, {"OPEN", "PARTITION"}), (("--all",), 35, {"STATE"})]
)
def test_80_columns_show_each_transaction_in_a_line_with_its_note(
    options: tuple[str, ...],
    rows: int,
    columns: set[str],
    golden_root: GoldenRoot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", terminal)
    for name in ("4.3.0/txn", "4.3.0/internal-logdir"):
        shutil.copytree(golden_root.case(name), tmp_path, dirs_exist_ok=True)
    assert run(["transactions", str(tmp_path), *options]) == 1
    heading, *lines, totals = terminal.getvalue().splitlines()
    # A second line may have more of a heading or of a note: the first column is whole.
    assert len([line for line in lines if line[0] != " "]) == rows
    assert heading.split()[-1] == "NOTE"
    assert max(map(len, terminal.getvalue().splitlines())) <= 80
    assert {"TOPIC", "TRANSACTIONAL"} | columns <= set(heading.split())
    assert totals == "3 open, 18 committed, 14 aborted, in 6 of 10 partitions"


def test_what_waits_behind_a_marker_is_a_note(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [data(0, 2), batch_v2(plain_records(1, 48))]})
    decided = coordinated(0, "audit", 2, 2, 3 * MINUTE, ("orders", 0))
    write_partition(tmp_path, {0: [batch_v2([decided])]}, name="__transaction_state-0")
    done = pylog_run("transactions", tmp_path, "--now", str(NOW))
    assert "decided 1970-01-01T00:03:00Z, 49 records, " in done.output.decode()


def test_a_transaction_that_began_after_now_has_no_age(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    write_partition(tmp_path, {0: [data(0, 2, NOW)]})
    done = pylog_run("transactions", tmp_path, "--now", str(NOW - 1))
    assert done.status == 0
    assert done.lines[1].endswith("began later")
    assert "OPEN FOR" not in done.lines[0]
