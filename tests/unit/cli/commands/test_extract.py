from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.golden import GoldenRoot
    from tests.unit.cli.conftest import Outcome


def test_a_range_is_copied_and_said_in_text_and_json(
    source: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    copy = tmp_path / "copy"
    range_ = ("--topic", "orders", "--partition", 0, "--start-offset", 3, "--end-offset", 20)
    planned = pylog_run("extract", source, "--to", copy, *range_, "--exact", "--dry-run")
    assert (planned.status, copy.exists()) == (0, False)
    assert planned.lines[-1] == "nothing was written (--dry-run)"
    done = pylog_run("extract", source, "--to", copy, *range_, "--exact")
    assert (done.status, done.lines[-1]) == (0, f"written: {copy}")
    assert done.lines[0].startswith("orders-0: offsets 3 to 19, ")
    assert "written anew" in done.lines[0]
    again = pylog_run("extract", source, "--to", copy, *range_)
    assert (again.status, "is not empty" in again.error) == (2, True)
    other = pylog_run("extract", source, "--to", tmp_path / "other", *range_, "--exact", "--json")
    document = json.loads(other.output)
    [part] = document["partitions"]
    assert (part["startOffset"], part["endOffset"]) == (3, 20)
    assert document["isWritten"] is True


def test_lost_records_of_the_range_are_named_with_status_1(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    batches = [batch_v2(plain_records(at, 10)) for at in range(0, 60, 10)]
    write_partition(tmp_path / "source", {0: batches[:2], 40: batches[4:]}, name="t-0")
    command = ("extract", tmp_path / "source", "--to", tmp_path / "copy", "--topic", "t")
    for more in (["--dry-run"], []):
        done = pylog_run(*command, *more)
        assert done.status == 1
        assert "t-0: offsets 20 to 39 missing, in the source already" in done.error


def test_a_cut_transaction_is_named_with_status_1(
    golden_root: GoldenRoot, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source = golden_root.case("4.3.0/txn") / "payments-0"
    listed = json.loads(pylog_run("sql", source, _FIRST_TRANSACTION, "--json").output)
    first, marker = listed["first_offset"], listed["marker_offset"]
    options = ("--end-offset", marker, "--exact")
    done = pylog_run("extract", source, "--to", tmp_path / "1", *options)
    assert done.status == 1
    assert f"begins at offset {first} was " in done.error
    assert f"at offset {marker}, after the end" in done.error
    whole = pylog_run(
        "extract", source, "--to", tmp_path / "2", *options, "--transactions", "include", "--json"
    )
    document = json.loads(whole.output)
    assert (whole.status, document["cutTransactions"]) == (0, [])
    assert document["partitions"][0]["endOffset"] > marker
    ended = pylog_run(
        "extract", source, "--to", tmp_path / "3", *options, "--transactions", "abort"
    )
    assert (ended.status, b"ABORT markers appended at" in ended.output) == (0, True)


def test_records_that_pass_tests_are_kept_alone_or_left_out(
    source: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    range_ = ("--topic", "orders", "--partition", 0)
    has_status = ("--json-path", "$.status=new")
    count = json.loads(
        pylog_run("search", source, *range_, *has_status, "--count", "--json").output
    )
    matches = count["summary"]["matches"]
    total = len(pylog_run("cat", source, *range_).lines)
    assert 0 < matches < total
    left_out = {}
    for name, more in (("kept", ()), ("others", ("--exclude",))):
        copy = tmp_path / name
        options = ("extract", source, "--to", copy, *range_, *has_status, *more, "--json")
        planned = json.loads(pylog_run(*options, "--dry-run").output)
        done = json.loads(pylog_run(*options).output)
        [left_out[name]] = [each["leftOutRecords"] for each in done["partitions"]]
        assert [each["leftOutRecords"] for each in planned["partitions"]] == [left_out[name]]
        assert len(pylog_run("cat", copy).lines) == total - left_out[name]
    assert left_out == {"kept": total - matches, "others": matches}
    alone = pylog_run("extract", source, "--to", tmp_path / "no", "--exclude")
    assert (alone.status, "goes with a test" in alone.error) == (2, True)


_FIRST_TRANSACTION = (
    "SELECT first_offset, marker_offset FROM transactions "
    "WHERE marker_offset IS NOT NULL ORDER BY first_offset LIMIT 1"
)
