"""``pyspark_pylog.topic_views(spark, path)``: topics as tables of Spark SQL, by their names."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pylog
from pylog.errors import InvalidSchemaError, NoSchemaError
from pyspark_pylog.options import LoadOptions, parse_paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMATS = ("valueformat", "keyformat")
_LOGGER = logging.getLogger(__name__)


def topic_views(spark: SparkSession, path: str, **options: Any) -> list[str]:  # noqa: ANN401 - as of DataFrameReader.options
    """Make a temporary view of each topic of a log directory, and return their names.

    Parameters
    ----------
    spark
        The session.
    path
        The log directory.
    **options
        Those of each read. With ``valueFormat`` or ``keyFormat`` views have typed values or keys
        where the topic has a schema.

    Notes
    -----
    Internal topics have no view. A topic whose schema is wrong or not clear has none either, nor
    has one whose name differs from another one's in case alone: warnings name them.

    Examples
    --------
    >>> pyspark_pylog.topic_views(spark, "kafka/intact")
    ['invoices-eu', 'orders']
    >>> spark.sql("SELECT count(*) FROM `invoices-eu`").first()[0]
    99
    """
    directory = pylog.open_directory(*parse_paths({"path": path}))
    topics = sorted({view.topic for view in directory.select()})
    made: dict[str, str] = {}
    for topic in topics:
        if (other := made.get(topic.lower())) is not None:
            _LOGGER.warning(
                "topic %s has no view: Spark takes its name for that of %s", topic, other
            )
            continue
        given = {**options, "subscribe": topic}
        lower = {name.lower(): str(value) for name, value in given.items()}
        formats: dict[str, Any] = {**LoadOptions.parse({"path": path} | lower).formats}
        try:
            pylog.scan(directory, topics=[topic], **formats)
        except NoSchemaError:
            given = {name: each for name, each in given.items() if name.lower() not in _FORMATS}
        except InvalidSchemaError as error:
            _LOGGER.warning("topic %s has no view: %s", topic, error)
            continue
        frame = spark.read.format("pylog").options(**given).load(path)
        frame.createOrReplaceTempView(f"`{topic}`")
        made[topic.lower()] = topic
    return list(made.values())
