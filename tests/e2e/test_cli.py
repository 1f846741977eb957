"""The installed program ``pylog``, started as a user starts it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.native.library import library_at, these_levels
from tests.support.batches import batch_v2, plain_records
from tests.support.golden import differences, read_expected
from tests.support.log_files import write_partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.golden import GoldenRoot

pytestmark = pytest.mark.e2e

SECONDS = 120
HEAVY = (
    "numba",
    "llvmlite",
    "numpy",
    "pyarrow",
    "pyarrow.compute",
    "pandas",
    "rich",
    "hashlib",
    "importlib.metadata",
    "pylog.cli.commands.ls",
    "pylog.cli.commands.cat",
)


def program() -> str:
    beside = Path(sys.executable).parent / "pylog"
    found = str(beside) if beside.exists() else shutil.which("pylog")
    assert found, "the program is not installed: pip install -e ."
    return found


def pylog_command(
    *arguments: object, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [program(), *map(str, arguments)],
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
        timeout=SECONDS,
    )


@pytest.fixture
def large_log(tmp_path: Path) -> Path:
    """More text than a pipe holds."""
    batches = [batch_v2(plain_records(at, 100, value_size=100)) for at in range(0, 20_000, 100)]
    write_partition(tmp_path, {0: batches})
    return tmp_path


@pytest.mark.parametrize(
    "partition_id",
    [
        "0.8.2.2/plain:web-events-0",
        "0.10.0.1/codec-lz4:u-lz4-0",
        "0.11.0.3/txn:payments-0",
        "2.8.2/mixed-magic:upgraded-0",
        "3.9.1/compacted-txn:after/profiles-txn-0",
        "4.3.0/codec-zstd:c-zstd-0",
        "4.3.0/extremes:extremes-0",
        "4.3.0/plain:orders-1",
        "4.3.0/internal-logdir:__consumer_offsets-0",
    ],
)
def test_cat_prints_the_golden_content(partition_id: str, golden_root: GoldenRoot) -> None:
    partition = golden_root.partition(partition_id)
    done = pylog_command("cat", partition.directory, "--values", "base64")
    assert (done.returncode, done.stderr) == (0, b"")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for record in found:
        assert record.pop("values") == "base64"
        assert record.pop("topic") == partition.topic
        assert record.pop("partition") == partition.partition
    path = partition.expected_path("uncommitted")
    assert path is not None
    assert differences(read_expected(path), found) == []


def test_ls_lists_a_log_directory(golden_root: GoldenRoot) -> None:
    done = pylog_command("ls", golden_root.case("4.3.0/internal-logdir"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"TOPIC ")
    assert b"\n5 topics, 9 partitions, 13 segments, 46.7KiB, " in done.stdout


def modules_after(*arguments: object) -> set[str]:
    """Return which heavy modules the program has imported when it is done."""
    code = (
        "import sys; from pylog.cli.main import run; status = run(sys.argv[1:]); "
        f"print(*[m for m in {HEAVY!r} if m in sys.modules], sep=',', file=sys.stderr); "
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return set(done.stderr.strip().split(",")) - {""}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_import_no_command_and_nothing_heavy(arguments: list[str]) -> None:
    assert modules_after(*arguments) == set()


def test_ls_imports_neither_numba_nor_arrow(golden_root: GoldenRoot) -> None:
    case = golden_root.case("4.3.0/internal-logdir")
    for arguments in (["ls"], ["ls", "--json"]):
        found = modules_after(*arguments, case)
        assert found.isdisjoint({"numba", "llvmlite", "pyarrow", "pandas", "rich"})


def test_help_of_cat_imports_nothing_heavy() -> None:
    found = modules_after("cat", "--help")
    assert found.isdisjoint({"numba", "llvmlite", "pyarrow", "pandas", "rich"})


def test_cat_imports_arrow_and_numpy_and_no_numba(golden_root: GoldenRoot) -> None:
    case = golden_root.case("4.3.0/plain")
    modules_after("cat", case)
    found = modules_after("cat", case)
    # Lines are made by Arrow's functions, column by column.
    assert found == {"numpy", "pyarrow", "pylog.cli.commands.cat"}


def test_a_reader_that_goes_away_ends_cat_quietly(large_log: Path) -> None:
    with subprocess.Popen(
        [program(), "cat", str(large_log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert json.loads(running.stdout.readline())["offset"] == 0
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(SECONDS) == 141


def test_help_into_a_closed_pipe_ends_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [program(), "--help"], check=False, stdout=writing, stderr=subprocess.PIPE, timeout=SECONDS
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def hear_interrupts() -> None:
    """Undo what a shell does to programs in the background: they are deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_cat_quietly_with_status_130(large_log: Path) -> None:
    with subprocess.Popen(
        [program(), "cat", str(large_log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - does nothing but that
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()  # it is reading, and will wait for us to read more
        running.send_signal(signal.SIGINT)
        _, error = running.communicate(timeout=SECONDS)
    assert (running.returncode, error) == (130, b"")


def test_ctrl_c_ends_a_follow_quietly_after_what_is_there(large_log: Path) -> None:
    with subprocess.Popen(
        [program(), "cat", str(large_log), "--follow", "--start-offset", "19999", "-f", r"%o\n"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - does nothing but that
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"19999\n"  # nobody has to ask for it
        running.send_signal(signal.SIGINT)
        _, error = running.communicate(timeout=SECONDS)
    assert (running.returncode, error) == (130, b"")


@pytest.mark.parametrize(
    "arguments", [["cat", "--merge"], ["search", "--value-regex", "."], ["cat", "-f%s"]]
)
def test_output_that_nobody_reads_ends_quietly(arguments: list[str], large_log: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [program(), arguments[0], str(large_log), *arguments[1:]],
        check=False,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=SECONDS,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("command", ["ls", "cat"])
def test_a_wrong_path_is_one_clear_line(command: str, tmp_path: Path) -> None:
    done = pylog_command(command, tmp_path / "nowhere")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode() == (
        f"pylog: error: {tmp_path / 'nowhere'}: no such directory (is it mounted on this host?)\n"
    )


def test_a_wrong_option_is_one_clear_line() -> None:
    done = pylog_command("cat", "--topics", "x", ".")
    assert done.returncode == 2
    assert done.stderr.startswith(b"pylog: error: no such option: --topics")
    assert done.stderr.count(b"\n") == 1


def test_a_traceback_is_shown_on_request_only(tmp_path: Path) -> None:
    assert b"Traceback" not in pylog_command("ls", tmp_path).stderr
    assert b"Traceback" in pylog_command("--debug", "ls", tmp_path).stderr


def test_a_full_disk_is_reported(large_log: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [program(), "cat", str(large_log)],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
        )
    assert done.returncode == 2
    assert done.stderr == b"pylog: error: standard output: No space left on device\n"


# An installation that nobody can write to


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """Copy the package as a wheel would install it."""
    site = tmp_path / "site"
    package = Path(pylog.__file__).parent
    shutil.copytree(package, site / "pylog", ignore=shutil.ignore_patterns("__pycache__"))
    library = library_at(these_levels()[0])
    shutil.copy(library, site / "pylog" / "native" / library.name)
    return site


def test_nothing_is_written_beside_the_package_or_into_the_home_directory(
    installation: Path, tmp_path: Path, golden_root: GoldenRoot
) -> None:
    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    code = (
        f"import sys; sys.path.insert(0, {str(installation)!r}); import pylog; "
        f"assert pylog.__file__.startswith({str(installation)!r}); "
        "from pylog.cli.main import run; status = run(sys.argv[1:]); sys.stdout.flush(); "
        "assert not {'numba', 'llvmlite'} & set(sys.modules); sys.exit(status)"
    )
    home = tmp_path / "home"
    home.mkdir()
    before = files()
    case = golden_root.case("4.3.0/plain")
    for command, lines in (("cat", 315), ("stats", None)):
        done = subprocess.run(
            [sys.executable, "-B", "-c", code, command, str(case)],
            check=False,
            capture_output=True,
            env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": "", "NUMBA_CACHE_DIR": ""},
            cwd=home,
            timeout=SECONDS,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert lines in (None, done.stdout.count(b"\n"))
    assert files() == before
