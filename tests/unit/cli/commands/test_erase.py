from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.log_files import tree
from tests.unit.recovery.test_erase import rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    pylog.write_topic(tmp_path / "logs", "users", rows(30), key="key", value="value")
    return tmp_path / "logs"


def test_records_are_erased_and_what_has_them_is_named(
    directory: Path, tmp_path: Path, pylog_run: Callable[..., Outcome]
) -> None:
    shutil.copytree(directory, tmp_path / "other")
    before = tree(directory)
    planned = pylog_run("erase", directory, "--key", "me", "--dry-run")
    assert (planned.status, tree(directory) == before) == (0, True)
    assert planned.lines == [
        "users-0: 10 records would be erased, 1 segment written anew",
        "nothing was changed (--dry-run)",
    ]
    done = pylog_run("erase", directory, "--key", "me", "--look-in", tmp_path / "other")
    assert done.status == 1
    assert done.lines[0].startswith("users-0: 10 records erased, 1 segment written anew; ")
    assert "00000000000000000000.log has 10 such records" in done.error
    again = pylog_run("erase", directory, "--key", "me", "--json")
    document = json.loads(again.output)
    assert (again.status, document["partitions"], document["isWritten"]) == (0, [], True)


def test_in_a_terminal_it_asks_first(
    directory: Path, pylog_run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pylog.cli.progress.is_asked", lambda: True)
    before = tree(directory)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    refused = pylog_run("erase", directory, "--key", "me")
    assert (refused.status, tree(directory) == before) == (2, True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: True)
    assert pylog_run("erase", directory, "--key", "me").status == 0
    assert tree(directory) != before
