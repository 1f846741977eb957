"""Run the Spark tests with the newest patch release of each Spark that is supported.

``python -m tests.spark_versions [4.1 4.2 …] [-- arguments of pytest]``: each in an environment of
its own under ``build/``, which has that pyspark and otherwise what the running Python has.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_FOLDERS = (
    "tests/spark",
    "tests/notebooks",
    "tests/kills",
    "tests/unit/connector",
    "tests/unit/jobs",
)

SUPPORTED = ("4.0", "4.1", "4.2", "4.3")
# Their collect() leaves sockets open.
_KNOWN = dict.fromkeys(("4.0", "4.1"), ("-W", "ignore:unclosed <socket.socket:ResourceWarning"))
_OUTCOME = re.compile(r"^=* ?(\d+ (?:passed|failed|error|skipped).*?) in ", re.MULTILINE)
_NO_SUMMARY = "pytest did not come to an end"


class Outcome(NamedTuple):
    """What became of one version."""

    version: str
    is_sound: bool
    summary: str
    seconds: float


def environment(series: str) -> str:
    """Return the Python of an environment with the newest patch release of a Spark."""
    directory = ROOT / "build" / f"spark-{series}"
    python = str(directory / "bin" / "python")
    if not Path(python).exists():
        venv.create(directory, with_pip=True)
    command = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--upgrade"]
    subprocess.run([*command, f"pyspark=={series}.*"], check=True)
    # After its own packages come the running Python's, with those that its .pth files name.
    [packages] = directory.glob("lib/python*/site-packages")
    others = sysconfig.get_path("purelib")
    (packages / "others.pth").write_text(f"import site; site.addsitedir({others!r})\n", "utf-8")
    return python


def run_tests(series: str, arguments: list[str]) -> Outcome:
    """Run pytest with a Spark; what it prints is printed."""
    start = time.monotonic()
    python = environment(series)
    ask = [python, "-c", "import pyspark; print(pyspark.__version__)"]
    version = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    say(f"== Spark {version}")
    if not version.startswith(f"{series}."):
        msg = f"pip installed Spark {version} for {series}"
        raise RuntimeError(msg)
    output = bytearray()
    command = [python, "-m", "pytest", "-m", "spark", "-p", "no:cacheprovider"]
    command += ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]  # a Spark for each
    command += [*_KNOWN.get(series, ()), *arguments]
    surroundings = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",  # dots at once
        # 4.1 compares DataFrames by way of pandas-on-Spark, which warns without it.
        "PYARROW_IGNORE_TIMEZONE": "1",
        # nbconvert looks for its templates in the environment that runs, not where it is installed.
        "JUPYTER_PATH": str(Path(sysconfig.get_path("data")) / "share" / "jupyter"),
    }
    with subprocess.Popen(command, cwd=ROOT, env=surroundings, stdout=subprocess.PIPE) as pytest:
        assert isinstance(pytest.stdout, io.BufferedReader)
        while some := pytest.stdout.read1():  # dots as they come, not lines
            sys.stdout.buffer.write(some)
            sys.stdout.flush()
            output += some
    found = _OUTCOME.findall(output.decode(errors="replace"))
    summary = found[-1] if found else _NO_SUMMARY
    return Outcome(version, pytest.returncode == 0, summary, time.monotonic() - start)


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run all; return the exit status, 0 if all tests passed with all versions."""
    own, arguments = sys.argv[1:], [*_FOLDERS]
    if "--" in own:
        at = own.index("--")
        own, arguments = own[:at], own[at + 1 :] or arguments
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("series", nargs="*", default=SUPPORTED, help=" ".join(SUPPORTED))
    outcomes = [run_tests(series, arguments) for series in parser.parse_args(own).series]
    say("\nSpark    result  minutes  tests")
    for each in outcomes:
        word = "ok" if each.is_sound else "FAILED"
        say(f"{each.version:8} {word:7} {each.seconds / 60:7.1f}  {each.summary}")
    return 0 if all(each.is_sound for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
