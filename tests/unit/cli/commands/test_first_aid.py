from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.recovery.test_first_aid import node, out_of_sync, with_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


def test_the_last_lines_say_how_to_put_the_copy_in_place(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source = node(tmp_path / "1", 1, with_topic(2, 1, 3), (1, 2, 3))
    copy = tmp_path / "copy"
    done = pylog_run("first-aid", source, "--to", copy, "--voters", "1")
    assert done.status == 0
    assert "partitions in-sync: 1" in done.lines
    appended = next(each for each in done.lines if each.startswith("append at offset"))
    assert "leaders and in-sync replicas of partitions (1 record, " in appended
    assert f"  2. cp -a {copy}/__cluster_metadata-0 {source}/__cluster_metadata-0" in done.lines
    assert any("set controller.quorum.voters=1@HOST:PORT " in each for each in done.lines)


def test_losses_are_named_and_the_status_says_so(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source = out_of_sync(tmp_path / "1", 1)
    done = pylog_run("first-aid", source, "--to", tmp_path / "copy", "--voters", "1", "--json")
    document = json.loads(done.output)
    assert done.status == 1
    assert document["partitions"][0]["fate"] == "needs-election"
    assert document["losses"][0].startswith("t-0: without a leader")
    assert "lost or not served: t-0" in done.error
    done = pylog_run(
        "first-aid", source, "--to", tmp_path / "other", "--voters=1", "--elect=unclean", "--json"
    )
    (append,) = json.loads(done.output)["appended"]
    assert append["sizeInBytes"] == len(bytes.fromhex(append["hex"]))


def test_a_dry_run_writes_nothing(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    source = node(tmp_path / "1", 1, with_topic(2, 1, 3), (1, 2, 3))
    done = pylog_run("first-aid", source, "--to", tmp_path / "copy", "--voters", "1", "--dry-run")
    assert (done.status, done.lines[-1]) == (0, "nothing was written (--dry-run)")
    assert not (tmp_path / "copy").exists()


def test_what_is_refused_ends_with_2(tmp_path: Path, pylog_run: Callable[..., Outcome]) -> None:
    source = node(tmp_path / "1", 1, with_topic(2, 1, 3), (1, 2, 3))
    log = source / "__cluster_metadata-0" / f"{0:020d}.log"
    for more in (["--voters", "2"], ["--voters", "one"], ["--endpoints", "1=h"], ["--use", "."]):
        assert pylog_run("first-aid", source, "--to", tmp_path / "copy", *more).status == 2
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    assert pylog_run("first-aid", source, "--to", tmp_path / "copy").status == 2
    assert not (tmp_path / "copy").exists()
