"""``make release-check``: everything of a release but the tag and the upload.

Builds the sdist, the wheels of all platforms, and each of them again from the sdist, and looks at
what is in them; then installs this machine's into an empty environment with the locked
requirements, and runs the command line and Spark's demonstration there. What only a release needs
(addresses, a section of the changelog) is a warning; with ``--strict`` it is an error.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pylog
from pylog.kernel_compilation import PLATFORMS, all_kernels, this_platform
from pylog.native.library import file_name
from tests.release_check.checks import (
    changelog_problems,
    description_problems,
    linux_problems,
    macos_problems,
    metadata_problems,
    sdist_problems,
    uncommitted_problems,
    wheel_differences,
    wheel_problems,
)
from tests.release_check.distribution import read_libraries, read_sdist, read_wheel
from tests.release_check.fresh_environment import FreshEnvironment, run
from tests.release_check.mach_o import read_mach_o
from tests.release_check.problem import Problem, StepFailedError
from tests.release_check.trial import steps
from tests.release_check.wheels import build_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "release-check"
DEMO = ROOT / "tests" / "golden" / "cases" / "4.3.0" / "internal-logdir.tar.xz"
_PACKAGE_FOLDERS = ("storage_core/pylog/", "connector/pyspark_pylog/", "jobs/pylog_jobs/")


class Report:
    """Prints what is found, and remembers whether a release could be made.

    Parameters
    ----------
    is_strict
        Whether a warning is an error.

    Attributes
    ----------
    errors, warnings
        How many there were.
    """

    def __init__(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self.errors = 0
        self.warnings = 0

    def add(self, what: str, problems: Iterable[Problem]) -> None:
        """Print a line for what was looked at, or two for each problem."""
        found = list(problems)
        for each in found:
            is_warning = each.is_warning and not self._is_strict
            self.warnings += is_warning
            self.errors += not is_warning
            self._print(f"{'warning' if is_warning else 'FAILED'}: {each.what}")
            self._print(f"  {each.advice}")
        if not found:
            self._print(f"ok: {what}")

    @staticmethod
    def _print(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


class Built(NamedTuple):
    """What was built: the wheels by platform, and each once more out of the sdist."""

    sdist: Path
    wheels: dict[str, Path]
    of_sdist: dict[str, Path]

    @property
    def of_this_machine(self) -> Path:
        """The wheel that can be installed here."""
        return self.wheels[this_platform()]


def build(directory: Path) -> Built:
    """Build the sdist and all wheels."""
    archive = directory / "sdist"
    build_sdist = [sys.executable, "-m", "build", "--no-isolation", "--sdist"]
    run([*build_sdist, "--outdir", archive, ROOT], ROOT, dict(os.environ))
    wheels = {each: build_wheel(each, directory / "wheels") for each in PLATFORMS}
    [sdist] = archive.glob("*.tar.gz")
    unpacked = directory / "unpacked"
    with tarfile.open(sdist) as content:
        content.extractall(unpacked, filter="data")
    [source] = unpacked.iterdir()
    # Its folder keeps no object files: what it has is compiled a second time.
    of_sdist = {each: build_wheel(each, directory / "from-sdist", source) for each in PLATFORMS}
    return Built(sdist, wheels, of_sdist)


def tracked_files() -> list[str]:
    """Return the files of the repository that are in its newest commit or added to the next."""
    listed = run(["git", "ls-files", "-z"], ROOT, dict(os.environ))
    return [name for name in listed.split("\0") if name]


def look_at(report: Report, built: Built) -> None:
    """Check what is in the distributions."""
    version, tracked = pylog.__version__, tracked_files()
    sdist = read_sdist(built.sdist)
    wheels = {platform: read_wheel(path) for platform, path in built.wheels.items()}
    modules = {path.partition("/")[2] for path in tracked if path.startswith(_PACKAGE_FOLDERS)}
    for each in (sdist, *wheels.values()):
        report.add(f"metadata of {each.name}", metadata_problems(each, version))
        report.add(f"description of {each.name}", description_problems(each))
    report.add(f"content of {sdist.name}", sdist_problems(sdist, tracked))
    for platform, wheel in wheels.items():
        libraries = {f"pylog/native/{file_name(each)}" for each in PLATFORMS[platform].levels}
        report.add(f"content of {wheel.name}", wheel_problems(wheel, modules | libraries))
        of_sdist = read_wheel(built.of_sdist[platform])
        report.add(f"{wheel.name}: the same of the sdist", wheel_differences(wheel, of_sdist))
        look_at_libraries(report, platform, built.wheels[platform])


def look_at_libraries(report: Report, platform: str, wheel: Path) -> None:
    """Check that the system of a wheel would load what is in it."""
    if platform.startswith("linux"):
        shown = run([sys.executable, "-m", "auditwheel", "show", wheel], ROOT, dict(os.environ))
        report.add(f"libraries of {wheel.name}, by auditwheel", linux_problems(wheel.name, shown))
        return
    kernels = [each.signature.name for each in all_kernels()]
    for name, content in read_libraries(wheel).items():
        found = macos_problems(name, read_mach_o(content), kernels)
        report.add(f"{name} of {wheel.name}: load commands, symbols, signature", found)


def try_out(report: Report, wheel: Path, directory: Path) -> None:
    """Install the wheel where nothing is, and use it."""
    environment = FreshEnvironment(directory)
    environment.install_locked(ROOT / "requirements" / "spark.lock")
    environment.install_wheel(wheel)
    if not environment.succeeds("python", "-m", "pylog_jobs.java_home", "--check"):
        environment.install_locked(ROOT / "requirements" / "java.lock")
    report.add("installed into an empty environment", ())
    with tarfile.open(DEMO) as archive:
        archive.extractall(directory, filter="data")
    logs = directory / "internal-logdir"
    for what, attempt in steps(environment, logs, pylog.__version__):
        try:
            attempt()
        except StepFailedError as error:
            advice = f"try it in {environment.prefix}"
            report.add(what, [Problem(f"{what}: {error}", advice)])
        else:
            report.add(what, ())


def counted(count: int, noun: str) -> str:
    """Return ``1 warning``, ``2 warnings``."""
    return f"{count} {noun}" + "s" * (count != 1)


def main() -> int:
    """Make the dry run; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.release_check", description=__doc__)
    parser.add_argument("--strict", action="store_true", help="warnings are errors: for a release")
    report = Report(is_strict=parser.parse_args().strict)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    report.add("the changelog", changelog_problems(changelog, pylog.__version__))
    try:
        status = run(["git", "status", "--porcelain"], ROOT, dict(os.environ))
        report.add("everything is committed", uncommitted_problems(status))
        built = build(WORK)
        look_at(report, built)
        try_out(report, built.of_this_machine, WORK)
    except StepFailedError as error:
        report.add("", [Problem(str(error), "nothing after this was looked at")])
    if report.errors:
        sys.stdout.write(f"No release: {counted(report.errors, 'thing')} failed.\n")
        return 1
    hint = (
        f" but for {counted(report.warnings, 'warning')}, which --strict counts"
        if report.warnings
        else ""
    )
    files = ", ".join(map(str, (built.sdist, *built.wheels.values())))
    sys.stdout.write(f"pylog {pylog.__version__} could be released{hint}: {files}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
