from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.adopted_disks import formatted, old, run
from tests.support.log_files import tree
from tests.unit.recovery.test_adopt_cluster import disks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.unit.cli.conftest import Outcome


def test_a_dry_run_shows_what_is_done_then(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    before = tree(target)
    planned = pylog_run("adopt", source, "--into", target, "--dry-run")
    assert (planned.status, tree(target) == before) == (0, True)
    assert planned.lines[-1] == ("nothing was written (--dry-run)")
    done = pylog_run("adopt", source, "--into", target)
    assert (done.status, done.lines[-1]) == (0, "done: start the node")
    assert done.lines[:-1] == planned.lines[:-1]
    assert f"t-0: from {source}/t-0, to offset 10, on node 7, leader epoch 4" in done.lines
    refused = pylog_run("adopt", source, "--into", target)
    assert (refused.status, "has a topic t" in refused.error) == (2, True)


def test_losses_are_named_and_the_status_says_so(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source, target = old(tmp_path / "old", partitions=(1,)), formatted(tmp_path / "new")
    done = pylog_run("adopt", source, "--into", target, "--rename", "t=u", "--json")
    document = json.loads(done.output)
    assert (done.status, document["isWritten"], document["appended"]) == (1, True, None)
    assert [each["source"] for each in document["partitions"]] == [None, f"{source}/t-1"]
    assert "lost: u-0: no disk has it" in done.error


def test_an_interrupted_call_is_ended_or_taken_back(
    tmp_path: Path, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    before = tree(target)

    def stop(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for option, text in (("--undo", "taken back"), ("--resume", "ended")):
        with monkeypatch.context() as patch:
            patch.setattr("pylog.recovery.adoption_steps.Adoption._write", stop)
            assert pylog_run("adopt", source, "--into", target).status == 2
        again = pylog_run("adopt", source, "--into", target)
        assert (again.status, "--resume" in again.error) == (2, True)
        done = pylog_run("adopt", "--into", target, option)
        assert (done.status, done.lines[0].startswith(text)) == (0, True)
        assert (tree(target) == before) == (option == "--undo")


def test_wrong_usage_says_what_is_missing(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source, target = old(tmp_path / "old"), run(tmp_path / "new")
    for arguments, text in (
        (("--into", target), "give the log directories of the old nodes"),
        ((source, "--into", target, "--rename", "t"), "not of the form OLD=NEW"),
        ((source, "--into", target, "--undo"), "with --into alone"),
        (("--into", target, "--undo"), "no call was interrupted"),
    ):
        done = pylog_run("adopt", *arguments)
        assert (done.status, text in done.error) == (2, True), done.error


def test_a_whole_cluster_is_moved_and_the_steps_are_shown(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    given, place = disks(tmp_path), tmp_path / "place"
    call = ["adopt", *given, "--as-cluster", "--into", place, "--nodes", "2"]
    planned = pylog_run(*call, "--dry-run")
    assert (planned.status, place.exists()) == (0, False)
    assert "nothing was written; the steps:" in planned.lines
    done = pylog_run(*call, "--endpoints", "2=host:9093")
    assert (done.status, done.lines[-1]) == (0, "  2. start node 2")
    assert "controller.quorum.voters=2@host:9093" in done.lines[-2]
    refused = pylog_run(*call)
    assert (refused.status, "only formatted" in refused.error) == (2, True)


def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    source, place = old(tmp_path / "old"), tmp_path / "place"
    for more in (["--as-cluster", "--topic", "t"], ["--nodes", "1"], ["--cluster-id", "x"]):
        assert pylog_run("adopt", source, "--into", place, *more).status == 2
    assert not place.exists()
