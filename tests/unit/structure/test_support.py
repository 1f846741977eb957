from __future__ import annotations

import pytest

from tests.structure.support import shared_code
from tests.unit.structure.made_up import tree_of

DRIVERS = {"driver": frozenset({"pylog", "pylog_jobs.java_home"})}


@pytest.mark.parametrize(
    "source",
    [
        "import pylog",
        "from pylog.record.record import write",
        "if TYPE_CHECKING:\n    from pylog.model import TopicPartition",
        "def f():\n    import pyspark_pylog\n",
    ],
)
def test_a_builder_that_imports_the_packages_is_a_problem(source: str) -> None:
    (problem,) = shared_code(tree_of({"tests.support.builder": source}), DRIVERS)
    assert problem.path == "tests/support/builder.py"
    assert "shares no code with the packages" in problem.remedy


def test_a_builder_may_import_builders_and_other_peoples_code() -> None:
    sources = {"tests.support.builder": "import numpy\nfrom tests.support.other import f",
               "tests.support.other": "import zlib"}  # fmt: skip
    assert not list(shared_code(tree_of(sources), DRIVERS))


@pytest.mark.parametrize(
    "source", ["from tests.support.driver import f", "from tests.support import driver"]
)
def test_a_builder_that_imports_a_driver_is_a_problem(source: str) -> None:
    sources = {"tests.support.builder": f"\n{source}", "tests.support.driver": "import pylog"}
    (problem,) = shared_code(tree_of(sources), DRIVERS)
    assert (problem.path, problem.line) == ("tests/support/builder.py", 2)
    assert "a driver of the product" in problem.what


def test_a_driver_may_import_what_is_listed_and_no_more() -> None:
    drivers = {"driver": frozenset({"pylog.record"})}
    allowed = "import pylog.record\nfrom pylog.record.record import write"
    assert not list(shared_code(tree_of({"tests.support.driver": allowed}), drivers))
    for source in ("import pylog", "import pylog.records", "import pyspark_pylog"):
        assert len(list(shared_code(tree_of({"tests.support.driver": source}), drivers))) == 1
