"""What is public: the names of `pylog`, of its namespaces and of `pylog.errors`, loaded when used.

That connector, jobs and command line use nothing else is held by tests/structure.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pylog

if TYPE_CHECKING:
    from types import ModuleType

# What works rather than stands for something: it may need Arrow and Numba.
WORKERS = {
    "cast_leaves",
    "CleanedGroup",
    "open_sink",
    "StagedCleaning",
    "CleaningTask",
    "CompactionJob",
    "GroupTask",
    "LargeCleaning",
    "LargeCleaningPlan",
    "LineAppender",
    "MergeCuts",
    "merge_partitions",
    "PartwiseDirectory",
    "RecordKeysTask",
    "SegmentTransactions",
    "SegmentTransactionsTask",
    "SchemaRegistration",
    "plan_registration",
    "register_schemas",
    "apply_retention",
    "compact",
    "delete_records",
    "decoded_latest",
    "diff",
    "dump",
    "doctor",
    "ends_within_bytes",
    "export",
    "adopt",
    "adopt_cluster",
    "end_adoption",
    "merge",
    "plan_for_running",
    "restore_groups",
    "extract",
    "erase",
    "mask",
    "read_mask_rules",
    "first_aid",
    "groups",
    "info",
    "merge_by_timestamp",
    "metadata_table",
    "plan_record_deletion",
    "plan_truncation",
    "read_table",
    "record_schema",
    "to_field_condition",
    "repair_copy",
    "scan",
    "schemas",
    "serve",
    "topics",
    "transactions",
    "stats",
    "timeline",
    "truncate_log",
    "write_topic",
}
NAMESPACES = [pylog, pylog.jobs, pylog.logs, pylog.results]


def seen_by_type_checkers(namespace: ModuleType) -> set[tuple[str, str]]:
    """Return (module, name) of what the file for type checkers imports."""
    assert namespace.__file__ is not None
    tree = ast.parse(Path(namespace.__file__).with_suffix(".pyi").read_text())
    names = set()
    for each in tree.body:
        if isinstance(each, ast.ImportFrom) and each.module != "pylog.lazy_modules":
            assert each.module is not None
            for name in each.names:
                assert name.asname == name.name  # exported, as type checkers see it
                names.add((each.module, name.name))
    return names


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_type_checkers_see_the_list_of_public_names(namespace: ModuleType) -> None:
    names = namespace._PUBLIC
    expected = {(names.module_of(name), name) for name in names.names}
    expected |= {(namespace.__name__, module) for module in names.modules}
    assert seen_by_type_checkers(namespace) == expected


def test_a_name_is_public_in_one_place() -> None:
    names = [name for each in NAMESPACES for name in each._PUBLIC.names]
    assert len(set(names)) == len(names)
    assert len(pylog._PUBLIC.names) < 60


@pytest.mark.parametrize("module", pylog._PUBLIC.modules)
def test_a_namespace_needs_no_import_of_its_own(module: str) -> None:
    code = f"import pylog; assert pylog.{module}.__name__ == 'pylog.{module}'"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_name_is_there(namespace: ModuleType) -> None:
    for name in namespace.__all__:
        assert getattr(namespace, name) is not None
    assert set(namespace.__all__) <= set(dir(namespace))


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="module 'pylog' has no attribute 'scna'"):
        _ = pylog.scna  # type: ignore[attr-defined]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_public_name_is_what_its_module_defines(namespace: ModuleType) -> None:
    for module, name in seen_by_type_checkers(namespace):
        if module == "pylog":
            continue
        found = getattr(namespace, name)
        assert found is getattr(importlib.import_module(module), name)
        # Not merely imported there: everything has one home.
        assert getattr(found, "__module__", module) in (module, "typing", "types"), name


def test_no_public_name_hides_a_module() -> None:
    assert {each.name for each in pkgutil.iter_modules(pylog.__path__)}.isdisjoint(pylog.__all__)


def test_modules_are_imported_as_any_are_and_scan_is_the_function() -> None:
    code = (
        "import pylog; scan = pylog.scan; import pylog.reading.reader, pylog.reading.scan; "
        "assert pylog.scan is scan is pylog.reading.scan.scan; assert callable(pylog.scan); "
        "assert pylog.reading.reader.TaskReader"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_values_that_are_passed_in_are_loaded_without_arrow_and_numba() -> None:
    values = sorted({*pylog.__all__, *pylog.jobs.__all__} - WORKERS)
    code = (
        "import sys, pylog; found = [getattr(pylog, name, None) or getattr(pylog.jobs, name) "
        f"for name in {values!r}]; "
        "print(*{'numpy', 'pyarrow', 'numba', 'typer', 'click', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
