"""pylog on 64-bit ARM, by qemu: the wheel, the kernels' own tests, what brokers wrote."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from pylog.cli.main import run
from pylog.kernel_compilation import all_kernels
from tests.arm import root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.golden import GoldenRoot

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not root.is_there(), reason="no Debian for ARM: make arm-root"),
]

SECONDS = 3600
KERNEL_FILES = sorted(
    str(path.relative_to(root.REPOSITORY))
    for path in root.REPOSITORY.glob("tests/unit/kernels/test_*.py")
    if path.stem != "test_numba_modes"  # there is no compiler
)
OF_KERNELS = [
    *(KERNEL_FILES[start : start + 4] for start in range(0, len(KERNEL_FILES), 4)),
    ["tests/unit/columnar/test_decode.py"],
    [
        "tests/unit/log_file/test_header_reading.py",
        "tests/unit/writing/test_partitioner.py",
    ],
]
"""Files of tests that together call every kernel; no run of them may take 10 minutes."""


@pytest.fixture(scope="module", autouse=True)
def pylog_for_arm() -> None:
    """Have this tree's wheel in the site."""
    root.unpack_pylog()


def output(arguments: Sequence[str], *, with_tests: bool = False, status: int = 0) -> str:
    """Return what ARM's Python prints."""
    paths = [root.SITE, *([root.TOOLS, root.REPOSITORY] if with_tests else [])]
    environment = {name: value for name, value in os.environ.items() if name[:6] != "PYTEST"}
    done = subprocess.run(
        root.python(*arguments),
        cwd=root.REPOSITORY,
        env={
            **environment,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "HYPOTHESIS_PROFILE": "few",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_the_library_for_its_instructions_is_what_it_loads() -> None:
    lines = dict(
        line.split(maxsplit=1) if line[:7] != "kernels" else line.rsplit(maxsplit=1)
        for line in output(["-m", "pylog", "--version", "--verbose"]).splitlines()
    )
    assert lines["kernels for"] == "aarch64-crc"
    assert "aarch64" in lines["system"]


@pytest.mark.parametrize(
    "arguments", [["cat"], ["cat", "--isolation", "read_committed"], ["ls", "--json"]]
)
def test_commands_print_what_they_print_here(
    arguments: list[str], golden_root: GoldenRoot, capfd: pytest.CaptureFixture[str]
) -> None:
    logs = str(golden_root.case("4.3.0/internal-logdir"))
    there = output(["-m", "pylog", *arguments, logs])
    assert run([*arguments, logs]) == 0
    assert there == capfd.readouterr().out


@pytest.mark.parametrize("part", ["1/4", "2/4", "3/4", "4/4"])
def test_golden_directories_are_read_as_here(part: str) -> None:
    assert "passed" in tests_there("tests/golden/test_golden_partitions.py", "--part", part)[-1]


def test_lines_of_records_are_written_as_here() -> None:
    assert "passed" in tests_there("tests/unit/record_lines")[-1]


@pytest.mark.parametrize("files", OF_KERNELS, ids=" ".join)
def test_the_tests_of_kernels_pass(files: list[str], called: set[str]) -> None:
    *_, names, counts = tests_there(*files, "-p", "tests.arm.called_kernels")
    assert "passed" in counts
    called.update(names.removeprefix("kernels: ").split())


def test_they_have_called_each_kernel(called: set[str], request: pytest.FixtureRequest) -> None:
    if request.session.testscollected > len(OF_KERNELS):  # not this test alone
        assert called == {kernel.signature.name for kernel in all_kernels()}


@pytest.fixture(scope="module")
def called() -> set[str]:
    """Give the names of the kernels that the tests have called so far."""
    return set()


def tests_there(*arguments: str) -> list[str]:
    """Return the lines that pytest prints on ARM; none of the tests fails."""
    options = ["-q", "-r", "N", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return output(["-m", "pytest", *options, *arguments], with_tests=True).splitlines()
