"""What ``tests/support`` may import of the packages.

A *builder* makes the bytes and values that tests hold the product against, so it shares no code
with the packages: it imports nothing of them, not even types, and no driver. A *driver*
runs the product, or finds what it needs to run, and returns what came of it; the imports that it
needs for that are listed here, one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.structure.source_tree import PACKAGE_FOLDERS, SourceTree, import_statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tests.structure.source_tree import Problem

SUPPORT = "tests.support"

DRIVERS: Mapping[str, frozenset[str]] = {
    # Reads directories, tables and plans.
    "reading": frozenset({"pylog", "pylog.record.record", "pylog.reading.damage"}),
    "metadata_rows": frozenset({"pylog", "pylog.internal_topics", "pylog.reading"}),
    "payloads": frozenset({"pylog.typed.decoder"}),
    # Runs what docstrings show, on what `pylog demo` unpacks.
    "examples": frozenset({"pylog"}),
    "spark_plans": frozenset({"pyspark_pylog", "pylog.reading.scan_task"}),
    # Decodes by the kernels and by the reference, which are held against each other.
    "decoding": frozenset({"pylog.columnar", "pylog.errors", "pylog.model", "pylog.record"}),
    # Writes what a broker takes over: the product's builder and log are what is tried there.
    "partition_writer": frozenset(
        {
            "pylog.model",
            "pylog.scheduling.scheduler",
            "pylog.log",
            "pylog.record",
            "pylog.testing",
        }
    ),
    "written_partitions": frozenset({"pylog.model"}),
    # Writes lines by a template, of records that the reference reads.
    "templated_lines": frozenset(
        {"pylog.dump_log", "pylog.model", "pylog.record", "pylog.record_lines"}
    ),
    # Stands between the product and the disk.
    "recording_io": frozenset({"pylog.files.durable_io"}),
    "killed_program": frozenset({"pylog.files.durable_io"}),
    # Speaks the protocol by the product's codec, which is held against Kafka's schemas.
    "raw_client": frozenset({"pylog.internal_topics", "pylog.server"}),
    "message_schemas": frozenset({"pylog.internal_topics.schema"}),
    # Finds a Java and starts what runs on it.
    "spark_session": frozenset({"pylog_jobs", "pyspark_pylog"}),
    "kafka_broker_jars": frozenset({"pyspark_pylog.errors", "pyspark_pylog.java_home"}),
    "standalone_cluster": frozenset({"pyspark_pylog.java_home"}),
    "jdbc_drivers": frozenset(),
    "table_formats": frozenset(),
    "kafka_broker": frozenset(),
    "kafka_cluster": frozenset(),
    "kafka_broker_tools": frozenset(),
    "java_source": frozenset(),
    "java_serdes": frozenset(),
    "foreign_clients": frozenset(),
}
"""The drivers, each with the modules, or packages with all in them, that it may import."""


def read_support(root: Path) -> SourceTree:
    """Return the modules of ``tests/support``."""
    return SourceTree.read(root, {SUPPORT.replace(".", "/"): ""})


def shared_code(
    support: SourceTree, drivers: Mapping[str, frozenset[str]] = DRIVERS
) -> Iterator[Problem]:
    """Find imports of the packages, or of drivers, by what is to be independent of them."""
    allowed_drivers = {f"{SUPPORT}.{name}" for name in drivers}
    for module in support:
        name = module.name.removeprefix(f"{SUPPORT}.")
        for each in import_statements(module):
            if each.target.split(".")[0] in PACKAGE_FOLDERS:
                if not _is_among(each.target, drivers.get(name, frozenset())):
                    yield module.problem(
                        each.line,
                        f"{module.name} imports {each.target}",
                        "A builder of test data shares no code with the packages; "
                        f"a driver names what it uses in {__name__}.DRIVERS.",
                    )
            elif name not in drivers and _is_among(each.target, allowed_drivers):
                yield module.problem(
                    each.line,
                    f"{module.name} imports a driver of the product, {each.target}",
                    f"Keep builders and drivers apart, or list it in {__name__}.DRIVERS.",
                )


def _is_among(target: str, modules: Iterable[str]) -> bool:
    """Return whether a target is one of the modules, or lies in one of them."""
    return any(f"{target}.".startswith(f"{each}.") for each in modules)
