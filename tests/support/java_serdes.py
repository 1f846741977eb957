"""Values as the Java serializers of Apicurio Registry and AWS Glue write them, without a registry.

The programs in ``tests/interop/java`` are what the serializers take for their registry. The jars
are fetched once below ``build``.
"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.java_source import java_command
from tests.support.kafka_broker_jars import KafkaNotFoundError, fetch_jars, give_up_without_kafka
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ROOT = Path(__file__).parents[2]
_SOURCES = _ROOT / "tests" / "interop" / "java"
_SECONDS = 300


class _Serdes(NamedTuple):
    source: str
    packages: Sequence[str]
    without: Sequence[str]


SERDES = {
    "apicurio-2": _Serdes(
        "ApicurioSerdes.java",
        [
            f"io.apicurio:apicurio-registry-serdes-{each}-serde:2.6.13.Final"
            for each in ("avro", "protobuf", "jsonschema")
        ],
        ["org.apache.kafka:kafka-clients"],
    ),
    "apicurio-3": _Serdes(
        "ApicurioSerdes.java",
        [
            f"io.apicurio:apicurio-registry-{each}-serde-kafka:3.1.7"
            for each in ("avro", "protobuf", "jsonschema")
        ],
        [
            "org.apache.kafka:kafka-clients",
            "io.apicurio:apicurio-registry-java-sdk",
            "io.apicurio:apicurio-registry-java-sdk-common",
            "io.apicurio:apicurio-registry-v2-java-sdk",
        ],
    ),
    "glue": _Serdes(
        "GlueSerdes.java",
        [
            "software.amazon.glue:schema-registry-serde:1.1.24",
            # Ivy leaves out Scala's library, and the one of Spark is not of 2.12.
            "com.kjetland:mbknor-jackson-jsonschema_2.13:1.0.39",
        ],
        [
            "com.kjetland:mbknor-jackson-jsonschema_2.12",
            "org.apache.kafka:kafka-clients",
            "software.amazon.awssdk:apache-client",
            "software.amazon.awssdk:netty-nio-client",
        ],
    ),
}


class Written(NamedTuple):
    """What a producer would have sent."""

    value: bytes
    headers: list[tuple[str, bytes]]


def written_by(name: str, requests: Iterable[dict[str, Any]]) -> list[list[Written]]:
    """Return, for each request, its payloads as the serializer writes them.

    A request is the schema with what the program is to do with it; ``payloads`` are bytes. Without
    the jars the test is skipped, in continuous integration it fails.
    """
    serdes = SERDES[name]
    answers = answers_of(serdes.source, name, serdes.packages, requests, without=serdes.without)
    errors = [each["error"] for each in answers if "error" in each]
    assert not errors, errors[0]
    return [[_written(value) for value in each["values"]] for each in answers]


def answers_of(
    source: str,
    name: str,
    packages: Sequence[str],
    requests: Iterable[dict[str, Any]],
    *,
    without: Sequence[str] = (),
    java_options: Sequence[str] = (),
    more_jars: Sequence[Path] = (),
) -> list[dict[str, Any]]:
    """Return what a program of ``tests/interop/java`` answers, a line for a line."""
    lines = [
        json.dumps({**each, "payloads": [_text(payload) for payload in each["payloads"]]})
        for each in requests
    ]
    try:
        folder = _ROOT / "build" / "serdes" / name
        jars = fetch_jars(",".join(packages), folder, without=",".join(without))
        options = (*SHORT_LIVED, *java_options)
        command = java_command(_SOURCES / source, options, more_jars=[*jars, *more_jars])
    except KafkaNotFoundError as error:
        give_up_without_kafka(f"the program {source}", error)
    ran = subprocess.run(
        command,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    answers = [json.loads(each) for each in ran.stdout.splitlines()]
    assert len(answers) == len(lines)
    return answers


def _written(answer: dict[str, Any]) -> Written:
    headers = [(name, base64.b64decode(content)) for name, content in answer["headers"]]
    return Written(base64.b64decode(answer["value"]), headers)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
