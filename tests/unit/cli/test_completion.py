from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pylog.cli.main import COMMANDS, COMPLETION_VARIABLE
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Outcome

SECONDS = 60


@pytest.fixture
def complete(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> Callable[[str], list[str]]:
    """Return what bash is told about the last word of a line, each as ``type,value``."""

    def complete_line(line: str) -> list[str]:
        monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        done = pylog_run()
        assert (done.status, done.error) == (0, "")
        return [line for line in done.lines if line]

    return complete_line


def test_commands_are_completed(complete: Callable[[str], list[str]]) -> None:
    assert complete("pylog ") == [f"plain,{name}" for name in COMMANDS]
    assert sorted(complete("pylog c")) == [
        "plain,cat",
        "plain,compact",
        "plain,create-topic",
    ]
    assert complete("pylog nothing") == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pylog --v", ["--version", "--verbose"]),
        ("pylog cat --start-", ["--start-offset", "--start-timestamp"]),
        ("pylog cat /logs --ig", ["--ignore-indexes"]),
        ("pylog cat /logs --l", ["--last", "--limit", "--leave-page-cache"]),
        ("pylog cat /logs --start-timestamp -2h --ke", ["--key-format", "--key"]),
        ("pylog create-topic --topic-", ["--topic-id"]),
        ("pylog delete-records --a", ["--all"]),
        ("pylog truncate x --wh", ["--whole-batch"]),
        ("pylog ls --j", ["--json"]),
        ("pylog search /logs --value-r", ["--value-regex"]),
        ("pylog cat /logs --fo", ["--format", "--formatter", "--follow"]),
        ("pylog export /logs --c", ["--columns", "--compression"]),
    ],
)
def test_options_are_completed(
    line: str, expected: list[str], complete: Callable[[str], list[str]]
) -> None:
    assert complete(line) == [f"plain,{option}" for option in expected]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pylog cat --mode ", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]),
        ("pylog cat --isolation read_c", ["read_committed"]),
        ("pylog cat --format t", ["text"]),
        ("pylog export x --compression ", ["zstd", "lz4", "none"]),
        ("pylog search x --isolation read_c", ["read_committed"]),
        ("pylog cat --values ", ["text", "base64"]),
        ("pylog append x --compression ", ["none", "gzip", "snappy", "lz4", "zstd"]),
        ("pylog append x --compression Z", ["zstd"]),
    ],
)
def test_values_of_options_are_completed(
    line: str, expected: list[str], complete: Callable[[str], list[str]]
) -> None:
    assert complete(line) == [f"plain,{value}" for value in expected]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pylog ls /va", "dir,/va"),
        ("pylog cat /logs /va", "file,/va"),
        ("pylog append lo", "dir,lo"),
        ("pylog append logs li", "file,li"),
        ("pylog truncate lo", "dir,lo"),
    ],
)
def test_paths_are_left_to_the_shell(
    line: str, expected: str, complete: Callable[[str], list[str]]
) -> None:
    assert complete(line) == [expected]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a log directory with three topics."""
    for name in ("orders-0", "orders-1", "old-0", "web-0"):
        write_partition(tmp_path / "logs", {0: []}, name=name)
    return tmp_path / "logs"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pylog cat LOGS --topic ", ["old", "orders", "web"]),
        ("pylog cat --topic o", []),
        ("pylog cat LOGS --topic web,o", ["web,old", "web,orders"]),
        ("pylog cat LOGS/orders-0 --topic o", ["orders"]),
        ("pylog ls LOGS LOGS/web-0 --topic ol", ["old"]),
        ("pylog append LOGS --topic w", ["web"]),
        ("pylog append LOGS --topic web,o", []),
        ("pylog truncate LOGS --partition 0 --topic or", ["orders"]),
        ("pylog delete-records LOGS --topic x", []),
        ("pylog create-topic LOGS --topic o", []),
        ("pylog cat LOGS/nowhere LOGS --topic w", ["web"]),
        ("pylog cat s3://nowhere/logs --topic w", []),
    ],
)
def test_topics_of_the_directory_are_completed(
    line: str, expected: list[str], logs: Path, complete: Callable[[str], list[str]]
) -> None:
    found = complete(line.replace("LOGS", str(logs)))
    assert found == [f"plain,{topic}" for topic in expected]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_function_of_their_own(
    shell: str, monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    monkeypatch.setenv(COMPLETION_VARIABLE, f"{shell}_source")
    done = pylog_run()
    assert (done.status, done.error) == (0, "")
    assert f"{COMPLETION_VARIABLE}={shell}_complete" in done.output.decode()


def test_zsh_is_told_the_whole_line_of_a_command(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    monkeypatch.setenv(COMPLETION_VARIABLE, "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", "pylog l")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert pylog_run().lines == ["plain", "ls", COMMANDS["ls"]]


def test_an_unknown_shell_is_one_line(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    monkeypatch.setenv(COMPLETION_VARIABLE, "csh_source")
    done = pylog_run()
    assert (done.status, done.output) == (2, b"")
    assert done.error == (
        "pylog: error: _PYLOG_COMPLETE is 'csh_source', expected bash_source, zsh_source or "
        "fish_source (see 'pylog --help')\n"
    )


def test_help_says_how_to_turn_it_on(pylog_run: Callable[..., Outcome]) -> None:
    assert f'eval "$({COMPLETION_VARIABLE}=bash_source pylog)"' in pylog_run().output.decode()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a directory for the ``PATH`` that has the program."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "pylog"
    program.write_text(f"#!{sys.executable}\nfrom pylog.cli.main import main\nmain()\n")
    program.chmod(0o755)
    return program.parent


def test_a_real_bash_completes(installed: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("this system has no bash")
    script = """
        PATH="$1:$PATH"
        eval "$(_PYLOG_COMPLETE=bash_source pylog)"
        complete -p pylog
        COMP_WORDS=(pylog append x --compression l); COMP_CWORD=4; COMPREPLY=()
        $(complete -p pylog | sed 's/.*-F \\([^ ]*\\).*/\\1/') pylog
        echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        [bash, "-c", script, "bash", str(installed)],
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.stderr == ""
    setup, reply = done.stdout.splitlines()
    assert setup.startswith("complete ")
    assert reply == "lz4"


@pytest.mark.skipif(shutil.which("fish") is None, reason="this system has no fish")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cat LOGS --topic web,o", ["web,old", "web,orders"]),
        ("tran", [f"transactions\t{COMMANDS['transactions']}"]),
        ("cat --mode DR", ["DROPMALFORMED"]),
    ],
)
def test_a_real_fish_completes_also_what_has_commas(
    line: str, expected: list[str], installed: Path, logs: Path
) -> None:
    script = f"""
        set -x PATH {installed} $PATH
        _PYLOG_COMPLETE=fish_source pylog | source
        complete -C "pylog {line.replace("LOGS", str(logs))}"
    """
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.stdout.splitlines(), done.stderr) == (expected, "")


def test_the_function_for_fish_splits_a_completion_once(
    monkeypatch: pytest.MonkeyPatch, pylog_run: Callable[..., Outcome]
) -> None:
    monkeypatch.setenv(COMPLETION_VARIABLE, "fish_source")
    splits = [line.strip() for line in pylog_run().lines if "string split" in line]
    assert splits == ['set -l metadata (string split -m 1 "," $completion);']


def test_completion_imports_nothing_heavy() -> None:
    code = (
        "import os, sys; from pylog.cli.main import run; "
        "os.environ.update(_PYLOG_COMPLETE='bash_complete', COMP_CWORD='2', "
        "COMP_WORDS='pylog append --t'); status = run([]); "
        "heavy = {'numba', 'llvmlite', 'pyarrow', 'numpy', 'pandas', 'rich'}; "
        "print(*sorted(heavy & set(sys.modules)), file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, timeout=SECONDS
    )
    assert (done.stdout, done.stderr) == (b"plain,--topic\n", b"\n")
