"""Java sources of tests, compiled as they are run, by the Janino that PySpark brings along.

So a test needs a Java, and no ``javac``. Janino knows the Java of old: no lambdas, and casts where
a type would be inferred.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tests.support.kafka_broker_jars import NEWEST_VERSION, find_java, kafka_class_path

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMPILER = ("janino", "commons-compiler")


def java_command(
    source: Path,
    java_options: Sequence[str] = (),
    *,
    version: str = NEWEST_VERSION,
    more_jars: Sequence[Path] = (),
) -> list[str]:
    """Return the command that runs the ``main`` of a class, given its source, beside Kafka's jars.

    Raises
    ------
    KafkaNotFoundError
        There is no Java, or Kafka's jars are not to be had.
    """
    spark_jars = Path(pyspark.__file__).parent / "jars"
    compiler = [str(jar) for name in _COMPILER for jar in spark_jars.glob(f"{name}-[0-9]*.jar")]
    return [
        *(str(find_java()), *java_options),
        *("-cp", os.pathsep.join([*compiler, kafka_class_path(version), *map(str, more_jars)])),
        *("org.codehaus.janino.SimpleCompiler", str(source), source.stem),
    ]
