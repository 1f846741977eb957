"""``make test-matrix``: the built wheel on each Python at hand, at both ends of its dependencies.

A session makes an environment of its own, installs the wheel and the lowest or the newest versions
that ``pyproject.toml`` allows and that have wheels for that Python, and runs `TESTS` in it: what
brokers wrote is read, what is written is read again, the command line and Spark's demo run. Pythons
that are not on the ``PATH`` are skipped and said so.

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
        *("--extra", "spark", "--extra", "java", "--extra", "duckdb"),  # `pylog sql` has tests
        *("--resolution", RESOLUTIONS[versions]),
        *("--only-binary", ":all:", *(f"--no-binary={each}" for each in SOURCE_ONLY)),
        *("--python-version", str(session.python), "--output-file", str(requirements)),
        "pyproject.toml",
    )
    session.run_install(
        *("uv", "build", "--quiet", "--wheel", "--clear", "--out-dir", str(DISTRIBUTIONS / name)),
        ".",
    )
    [wheel] = (DISTRIBUTIONS / name).glob("*.whl")
    session.install("-r", str(requirements), *TOOLS)
    session.install("--no-deps", str(wheel))
    session.run(
        # Old libraries warn of what newer Pythons or NumPys have deprecated since.
        *("python", "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider"),
        *(session.posargs or TESTS),
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
