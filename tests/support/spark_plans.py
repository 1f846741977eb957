"""What a DataFrame over a log has Spark read: the options of its ``load()``, and their tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from pyspark_pylog import DefaultSource
from pyspark_pylog.batch_reader import TaskPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pylog.reading.scan_task import ScanTask


def relation_of(frame: DataFrame) -> Any:  # noqa: ANN401 - of the JVM
    """Return the only relation that a DataFrame reads."""
    node = frame._jdf.queryExecution().optimizedPlan()
    while node.children().size():
        assert node.children().size() == 1
        node = node.child()
    return node.relation()


def options_of(frame: DataFrame) -> dict[str, str]:
    """Return the options of the ``load()`` below a DataFrame."""
    return dict(relation_of(frame).options().asCaseSensitiveMap())


def columns_of(frame: DataFrame) -> list[str]:
    """Return the columns that the ``load()`` below a DataFrame is asked for."""
    output = relation_of(frame).output()
    return [output.apply(at).name() for at in range(output.size())]


def tasks_of(frame: DataFrame) -> list[ScanTask]:
    """Return what the ``load()`` below a DataFrame plans, planned here once more."""
    source = DefaultSource(options_of(frame))
    known = {field.name: field for field in source.schema()}
    schema = StructType([known[name] for name in columns_of(frame)])
    partitions = source.reader(schema).partitions()
    return [task for each in partitions if isinstance(each, TaskPartition) for task in each.tasks]
