"""How tests come by Azurite."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.azurite import AzuriteNotFoundError, find_azurite

if TYPE_CHECKING:
    from pathlib import Path

INSTALLS = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
mkdir -p "$3/node_modules/.bin" && touch "$3/node_modules/.bin/azurite-blob"
"""
FAILS = "#!/bin/sh\necho 'npm error first' >&2\necho 'npm error nothing is reached' >&2\nexit 1\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder that has the only programs beside the system's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.delenv("AZURITE", raising=False)
    monkeypatch.setattr("tests.support.npm._SECONDS_BETWEEN_TRIES", 0)
    for name in ("sh", "dirname", "mkdir", "touch"):
        (folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(folder))
    return folder


def npm(programs: Path, text: str) -> None:
    program = programs / "npm"
    program.write_text(text)
    program.chmod(0o755)


def test_it_is_fetched_once(programs: Path, tmp_path: Path) -> None:
    npm(programs, INSTALLS)
    found = [find_azurite(tmp_path / "build") for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].exists()
    [call] = (programs / "calls").read_text().splitlines()
    assert call.startswith("install --prefix ")
    assert " azurite@" in call


def test_one_that_is_named_or_on_the_path_is_taken(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm(programs, FAILS)
    installed = programs / "azurite-blob"
    installed.write_text("#!/bin/sh\n")
    installed.chmod(0o755)
    assert find_azurite(tmp_path / "build") == installed
    monkeypatch.setenv("AZURITE", "/opt/azurite-blob")
    assert str(find_azurite(tmp_path / "build")) == "/opt/azurite-blob"


@pytest.mark.usefixtures("programs")
def test_without_npm_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(AzuriteNotFoundError, match="no npm here, and AZURITE names"):
        find_azurite(tmp_path / "build")


def test_what_npm_says_at_last_is_the_reason(programs: Path, tmp_path: Path) -> None:
    npm(programs, FAILS)
    with pytest.raises(AzuriteNotFoundError, match=r"azurite@[\d.]+: npm error nothing is reached"):
        find_azurite(tmp_path / "build")
