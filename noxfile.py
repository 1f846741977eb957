"""``make test-matrix``: the built wheel on each Python at hand, at both ends of its dependencies.

A session makes an environment of its own, installs the wheel and the lowest or the newest versions
that ``pyproject.toml`` allows and that have wheels for that Python, and runs `TESTS` in it: what
brokers wrote is read, what is written is read again, the command line and Spark's demo run. Pythons
are those of ``make pythons``, then those on the ``PATH``; what is missing is skipped and said so.

``make test-matrix MATRIX="-s 'installed-3.12(lowest)' -- tests/unit"`` runs one session, and other
tests. docs/compatibility.md has the results.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}

SOURCE_ONLY = ("pyspark",)  # has no wheels; it is pure Python
TOOLS = (
    "aiokafka",
    "chispa",
    "crcmod",
    "hypothesis",
    "kafka-python",
    "psutil",
    "pytest",
    "pytest-benchmark",
    "pytest-xdist",
)
TESTS = (
    "tests/golden/test_golden_partitions.py",
    "tests/unit/columnar",
    "tests/unit/native",
    "tests/unit/record",
    "tests/unit/writing",
    "tests/unit/cli",
    "tests/e2e/test_cli.py",
    "tests/e2e/test_demo.py",
)
READING = ("tests/golden/test_golden_partitions.py",)
WITHOUT_FREE_THREADING = ("lz4", "zstandard")  # they have no wheels for such a Python
AIRFLOW = ("apache-airflow-core>=3", "apache-airflow-providers-standard")
DISTRIBUTIONS = Path("build/test-matrix")


@nox.session(python=PYTHONS)
@nox.parametrize("versions", list(RESOLUTIONS), ids=list(RESOLUTIONS))
def installed(session: nox.Session, versions: str) -> None:
    """Test the installed wheel."""
    name = f"{versions}-{session.python}"
    requirements = DISTRIBUTIONS / f"{name}.txt"
    DISTRIBUTIONS.mkdir(parents=True, exist_ok=True)
    session.run_install(
        *("uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"),
        *("--extra", "spark", "--extra", "java"),
        *("--extra", "duckdb", "--extra", "browse"),  # `pylog sql` and `browse` have tests
        *("--resolution", RESOLUTIONS[versions]),
        *("--only-binary", ":all:", *(f"--no-binary={each}" for each in SOURCE_ONLY)),
        *("--python-version", str(session.python), "--output-file", str(requirements)),
        "pyproject.toml",
    )
    session.install("-r", str(requirements), *TOOLS)
    session.install("--no-deps", str(built_wheel(session)))
    run_tests(session, TESTS)


@nox.session(python="3.14t")
def free_threaded(session: nox.Session) -> None:
    """Read what brokers wrote with a Python that has no lock, by two threads among others."""
    needed = nox.project.load_toml("pyproject.toml")["project"]["dependencies"]
    session.install(*(each for each in needed if not each.startswith(WITHOUT_FREE_THREADING)))
    session.install("--no-deps", str(built_wheel(session)))
    session.install(*TOOLS)
    run_tests(session, READING)


_WHEELS: list[Path] = []


def built_wheel(session: nox.Session) -> Path:
    """Return the wheel of this tree, which is the same for all Pythons."""
    if not _WHEELS:
        folder = DISTRIBUTIONS / "wheel"
        session.run_install("uv", "build", "--quiet", "--wheel", "--clear", "-o", str(folder), ".")
        _WHEELS.extend(folder.glob("*.whl"))
    [wheel] = _WHEELS
    return wheel


def run_tests(session: nox.Session, tests: tuple[str, ...]) -> None:
    """Run what is asked for on the command line, else ``tests``."""
    session.run(
        # Old libraries warn of what newer Pythons or NumPys have deprecated since.
        *("python", "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider"),
        *(session.posargs or tests),
        env={"PYTHONPATH": None, "HYPOTHESIS_PROFILE": "fast"},
    )


@nox.session(python=PYTHONS[1])
def airflow(session: nox.Session) -> None:
    """Run the DAG of jobs/schedulers in Airflow."""
    session.install(*AIRFLOW, "pytest", "pytest-benchmark")
    session.run(
        *(
            "python",
            "-m",
            "pytest",
            "-q",
            "-W",
            "default",
            "-p",
            "no:cacheprovider",
            "--noconftest",
        ),
        "tests/unit/jobs/test_airflow_dag.py",
    )
