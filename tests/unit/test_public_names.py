"""What is public: `pylog.__all__` and `pylog.errors`, loaded when used.

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

import pytest

import pylog

# What works rather than stands for something: it may need Arrow and Numba.
WORKERS = {
    "CleaningTask",
    "KeptCode",
    "CompactionJob",
    "Dump",
    "GroupTask",
    "LargeCleaning",
    "LargeCleaningPlan",
    "LineAppender",
    "LogCleaner",
    "LogContext",
    "LogDatabase",
    "LogManager",
    "LogStatistics",
    "MetadataTable",
    "RecordKeysTask",
    "Scan",
    "SegmentTransactions",
    "SegmentTransactionsTask",
    "UnifiedLog",
    "apply_retention",
    "compact",
    "compile_kernels",
    "delete_records",
    "dump",
    "doctor",
    "ends_within_bytes",
    "export",
    "groups",
    "merge_by_timestamp",
    "metadata_table",
    "own_log_directory",
    "read_table",
    "record_schema",
    "repair_copy",
    "scan",
    "topics",
    "transactions",
    "stats",
    "truncate_log",
    "write_topic",
}
# What those give back: it may come with the module that makes it.
RESULTS = {
    "CommittedOffset",
    "ConsumerGroup",
    "DescribedPartition",
    "DescribedTopic",
    "ExportedFile",
    "FileReport",
    "GroupListing",
    "GroupMember",
    "ListedTransaction",
    "TopicDescription",
    "TransactionListing",
}


def seen_by_type_checkers() -> set[tuple[str, str]]:
    """Return (module, name) of what is imported for type checkers alone."""
    tree = ast.parse(Path(pylog.__file__).read_text())
    [block] = [each for each in tree.body if isinstance(each, ast.If)]
    names = set()
    for each in block.body:
        assert isinstance(each, ast.ImportFrom)
        assert each.module is not None
        for name in each.names:
            assert name.asname == name.name  # exported, as type checkers see it
            names.add((each.module, name.name))
    return names


def test_type_checkers_see_the_list_of_public_names() -> None:
    names = pylog._PUBLIC
    assert seen_by_type_checkers() == {(names.module_of(name), name) for name in names.names}


def test_every_public_name_is_there_and_no_other() -> None:
    assert len(set(pylog.__all__)) == len(pylog.__all__)
    for name in pylog.__all__:
        assert getattr(pylog, name) is not None
    assert set(pylog.__all__) <= set(dir(pylog))
    with pytest.raises(AttributeError, match="module 'pylog' has no attribute 'scna'"):
        _ = pylog.scna  # type: ignore[attr-defined]


def test_a_public_name_is_what_its_module_defines() -> None:
    for module, name in seen_by_type_checkers():
        found = getattr(pylog, name)
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
    values = sorted(set(pylog.__all__) - WORKERS - RESULTS)
    code = (
        f"import sys, pylog; found = [getattr(pylog, name) for name in {values!r}]; "
        "print(*{'numpy', 'pyarrow', 'numba', 'typer', 'click', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
