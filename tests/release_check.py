"""``make release-check``: all of a release but the upload; what it finds missing, it names.

Builds the source distribution and the wheel, installs the wheel with the extra ``spark`` into an
empty environment, as a user would, and runs the program and the demo there. Then it follows the
Dockerfile without a container: the steps of its first stage, in a plain directory.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pylog

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "release-check"
CASE = ROOT / "tests/golden/cases/4.3.0/internal-logdir.tar.xz"
RECORDS = "pylog.scan(sys.argv[1]).count()"
IN_THE_IMAGE = "/opt/pylog"
PLACEHOLDER = "example.org"


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(*command: str | Path, cwd: Path = WORK) -> str:
    """Run a program as a user's shell would; return what it prints."""
    say(f"  $ {shlex.join(map(str, command))}")
    # The sources of this clone are not to be found, only what is installed.
    hidden = ("PYTHONPATH", "NUMBA_CACHE_DIR", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode()


def build() -> Path:
    """Build both distributions; return the wheel."""
    run(sys.executable, "-m", "build", "--outdir", WORK / "dist", ROOT)
    [wheel] = (WORK / "dist").glob("*.whl")
    [source] = (WORK / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "NOTICE", "README.md", "pyproject.toml"} <= names, sorted(names)[:20]
    return wheel


def problems_of(wheel: Path) -> list[str]:
    """Return what a release would have to say or hold, and this one does not."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [about] = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(about).decode())
    problems = []
    if metadata["Version"] != pylog.__version__:
        problems.append(f"the wheel has version {metadata['Version']}, not {pylog.__version__}")
    if f"\n## {pylog.__version__}" not in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        problems.append(f"CHANGELOG.md has no section '## {pylog.__version__}'")
    if any(PLACEHOLDER in url for url in metadata.get_all("Project-URL", [])):
        problems.append(f"project.urls in pyproject.toml still lead to {PLACEHOLDER}")
    page = str(metadata.get_payload())
    if relative := re.findall(r"\]\((?!https?:|#)([^)]+)\)", page):
        problems.append(f"the page of the package index has relative links: {relative}")
    packages = {"pylog", "pyspark_pylog", "pylog_jobs"}
    if top := {name.split("/")[0] for name in names if ".dist-info" not in name} - packages:
        problems.append(f"the wheel installs more than its packages: {sorted(top)}")
    return problems


def try_installed(wheel: Path, logs: Path) -> None:
    """Install the wheel into an empty environment, and use it there."""
    environment = WORK / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[spark]")
    assert run(environment / "bin" / "pylog", "--version") == f"pylog {pylog.__version__}\n"
    run(environment / "bin" / "pylog", "ls", logs)
    count = run(python, "-c", f"import sys, pylog; print({RECORDS})", logs)
    assert int(count) > 0
    say(run(python, "-c", "import pylog; pylog.show_versions()"))
    demo = run(python, "-m", "pylog_jobs.demo", logs)
    assert "On your own directory:" in demo


def image_steps() -> list[str]:
    """Return the commands that the first stage of the Dockerfile runs."""
    first_stage = (ROOT / "Dockerfile").read_text("utf-8").split("\nFROM ")[1]
    return re.findall(r"^RUN ((?:.*\\\n)*.*)$", first_stage, re.MULTILINE)


def follow_dockerfile(logs: Path) -> None:
    """Run the steps of the Dockerfile in a directory, then its entry point."""
    sources, target = WORK / "src", WORK / "image"
    run("git", "clone", "-q", "--depth", "1", f"file://{ROOT}", sources)
    for step in image_steps():
        run("sh", "-ec", step.replace(IN_THE_IMAGE, str(target)), cwd=sources)
    kept = list(target.rglob("*.kernel"))
    assert kept, "pylog compile kept no kernel"
    listed = run(target / "bin" / "pylog", "ls", logs)
    assert "orders" in listed
    assert run(target / "bin" / "pylog", "cat", logs).count("\n") > 0
    assert len(list(target.rglob("*.kernel"))) == len(kept), "a kernel was compiled again"


def main() -> int:
    """Check; return the exit status."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    with tarfile.open(CASE) as archive:
        archive.extractall(WORK / "logs", filter="data")
    logs = WORK / "logs" / "internal-logdir"
    say("== build")
    wheel = build()
    problems = problems_of(wheel)
    say("== install, read, Spark")
    try_installed(wheel, logs)
    say("== the steps of the Dockerfile")
    follow_dockerfile(logs)
    for problem in problems:
        say(f"before a release: {problem}")
    say(f"{wheel.name} works; {len(problems)} things to do before it is released")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
