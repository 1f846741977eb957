"""Files of server properties, read by Kafka's own classes and by us."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from pylog.config import LogConfig
from pylog.config.server_properties import ServerProperties
from pylog.errors import InvalidConfigurationError
from pylog.files.java_properties import ENCODING, parse_java_properties
from tests.broker.conftest import BROKER_VERSIONS
from tests.support.java_source import java_command
from tests.support.kafka_broker_jars import NEWEST_VERSION, VERSION_BEFORE

SOURCE = Path(__file__).parent / "java" / "ServerPropertiesPeer.java"
FILES = 600
SEED = 16
pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_is_here")]

# Values that Kafka takes, and some that it refuses.
NUMBERS = ["1", "7", "0", "-1", "-9", " 12 ", "+3", "2147483647", "2147483648", "x", "", "1.5"]
NUMBERED = [
    *("log.retention.ms", "log.retention.minutes", "log.retention.hours", "log.retention.bytes"),
    *("log.roll.ms", "log.roll.hours", "log.roll.jitter.ms", "log.roll.jitter.hours"),
    *("log.flush.interval.ms", "log.flush.interval.messages"),
    *("log.index.size.max.bytes", "log.index.interval.bytes", "log.segment.delete.delay.ms"),
    *("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms"),
    *("log.cleaner.delete.retention.ms", "log.cleaner.min.compaction.lag.ms"),
    *("log.cleaner.max.compaction.lag.ms", "log.cleaner.backoff.ms", "log.cleaner.io.buffer.size"),
    *("log.cleaner.threads", "message.max.bytes", "num.partitions", "compression.zstd.level"),
    *("log.retention.check.interval.ms", "log.flush.offset.checkpoint.interval.ms"),
    "num.recovery.threads.per.data.dir",
]
WORDED = {
    "log.segment.bytes": ["1048576", "2147483647", "x"],  # smaller ones only Kafka refuses
    "log.cleanup.policy": ["compact", "delete", "compact, delete", "", "Compact", "compact,x"],
    "log.message.timestamp.type": ["CreateTime", "LogAppendTime", "createtime"],
    "log.preallocate": ["true", "FALSE", "yes"],
    "log.cleaner.enable": ["true", "False", "1"],
    "log.cleaner.min.cleanable.ratio": ["0", "0.25", "1", "1.5", "-0.1"],
    "log.cleaner.io.buffer.load.factor": ["0.01", "0.5", "1"],  # others stop Kafka's cleaner
    "log.cleaner.io.max.bytes.per.second": ["1", "1e6", "2500000.5"],
    "log.cleaner.dedupe.buffer.size": ["1048576", "1048577", "9000000", "-1"],
    "compression.type": ["producer", "zstd", "uncompressed", "gzip", "none", "ZSTD"],
    "log.flush.scheduler.interval.ms": ["1", "500", "x"],  # Kafka takes negative ones, too
    "compression.gzip.level": ["-1", "1", "9", "0", "10"],
    "compression.lz4.level": ["1", "17", "18"],
    "log.dirs": ["/a", " /a , /b ", "/a,,/b", "", "/a,/b,/a", r"C:\\logs\ 1"],
    "log.dir": ["/c", "/c,/d", ""],
    "listeners.x": ["passed over"],
    "log.dir.failure.timeout.ms": ["5"],
}
SEPARATORS = ["=", " = ", ":", " ", "\t: ", "=\\\n   "]
SYNTAX = ["a", "b", " ", "=", ":", "#", "!", "\\", "\n", "\r", "\t", "\f", "u0041", "\\u00e9", "é"]


OF_4_4 = "max.decompressed.message.bytes"


def random_file(source: random.Random, *more: str) -> str:
    """Return some properties, each sound or not, now and then one twice."""
    lines = []
    for _ in range(source.randint(0, 6)):
        name = source.choice([*NUMBERED, *WORDED, *more])
        sound = [text for text in NUMBERS if text.strip().isdecimal()]
        values = WORDED.get(name, NUMBERS if source.random() < 0.3 else sound)
        lines.append(f"{name}{source.choice(SEPARATORS)}{source.choice(values)}")
    return "\n".join(lines)


def ask_kafka(files: list[Path], version: str = NEWEST_VERSION) -> list[list[str]]:
    """Return what Kafka's classes say of each file."""
    command = [*java_command(SOURCE, version=version), *map(str, files)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=120)
    _, *answers = done.stdout.decode().split("FILE ")
    return [answer.splitlines()[1:] for answer in answers]


@pytest.mark.parametrize(
    "version", [NEWEST_VERSION, pytest.param(VERSION_BEFORE, marks=pytest.mark.thorough)]
)
def test_kafka_makes_the_same_of_the_same_files(version: str, tmp_path: Path) -> None:
    source = random.Random(SEED)
    files = []
    unknown = {OF_4_4} if version == VERSION_BEFORE else set()
    for number in range(FILES):
        files.append(tmp_path / f"{number}.properties")
        files[-1].write_text(random_file(source, *({OF_4_4} - unknown)), ENCODING)
    refused = 0
    for file, answer in zip(files, ask_kafka(files, version), strict=True):
        text = file.read_text(ENCODING)
        if any(line.startswith("REFUSED") for line in answer):
            refused += 1
            with pytest.raises(InvalidConfigurationError):
                pytest.fail(f"Kafka refuses {text!r}, we read {ServerProperties.read(file)}")
            continue
        theirs = dict(line.split("=", 1) for line in answer)
        found = ServerProperties.read(file)
        ours = {
            **found.log_config.properties(),
            **found.cleaner_config.properties(),
            **found.manager_config.properties(),
            "log.dirs": ",".join(found.log_dirs),
            "num.partitions": str(found.num_partitions),
        }
        assert LogConfig().properties().keys() - unknown <= theirs.keys()
        for name in ours.keys() & theirs.keys():
            assert plain(name, ours[name]) == plain(name, theirs[name]), (name, text)
    assert FILES / 8 < refused < FILES * 7 / 8


def plain(name: str, text: str) -> object:
    """Return a value without the forms that Java and Python write it in."""
    if name == "cleanup.policy":
        return set(text.split(","))
    try:
        return float(text)
    except ValueError:
        return text


def test_java_reads_the_same_properties(tmp_path: Path) -> None:
    source = random.Random(SEED)
    files = []
    for number in range(FILES):
        files.append(tmp_path / f"{number}.properties")
        pieces = source.choices(SYNTAX, k=source.randint(1, 12))
        files[-1].write_bytes("".join(pieces).encode(ENCODING))
    for file, answer in zip(files, ask_kafka(files), strict=True):
        text = file.read_bytes().decode(ENCODING)
        if any(line.startswith("REFUSED Malformed") for line in answer):
            with pytest.raises(ValueError, match="hexadecimal"):
                parse_java_properties(text)
            continue
        lines = [line for line in answer if line.startswith("property.")]
        theirs = dict(line.removeprefix("property.").split("=", 1) for line in lines)
        theirs.pop("", None)  # of a backslash that nothing follows; depends on the line's end
        ours = {units(key): units(each.value) for key, each in parse_java_properties(text).items()}
        ours.pop("", None)
        assert ours == theirs, repr(text)


def units(text: str) -> str:
    return " ".join(f"{ord(character):x}" for character in text)


@pytest.mark.parametrize("version", BROKER_VERSIONS)
def test_no_property_that_a_broker_has_is_refused(version: str, tmp_path: Path) -> None:
    command = java_command(SOURCE.with_name("BrokerPropertyNames.java"), version=version)
    done = subprocess.run(command, check=True, capture_output=True, timeout=120, text=True)
    lines = done.stdout.splitlines()
    names = [line.removeprefix("NAME ") for line in lines if line.startswith("NAME ")]
    assert len(names) > 300
    path = tmp_path / "server.properties"
    refused = []
    for name in names:
        path.write_text(f"{name}=\n", "utf-8")
        try:
            ServerProperties.read(path)
        except InvalidConfigurationError as error:
            if "expected" not in error.reason:  # the empty value is
                refused.append(error.reason)
    assert refused == []
