"""Part one: every reader over every data set, one core, taking turns."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.codec_alone import CodecReader
from benchmarks.data_sets import CURRENT_MAGIC, Bench, DataSet
from benchmarks.java_peer import FILE_RECORDS, JavaReader, JavaTools, Jvm
from benchmarks.measuring import Figure, NotHereError, Reader, Run, rounds_of
from benchmarks.ours import OurReader
from benchmarks.python_peers import aiokafka_reader, kafka_python_reader

OURS = "pylog"
OURS_UNCOMPRESSED = "pylog, same records uncompressed"
CODEC_ALONE = "codec alone"
AIOKAFKA = "aiokafka"
KAFKA_PYTHON = "kafka-python"
JAVA = "java"


class _Uncompressed:
    """Our reader over the uncompressed set of the same records, in the rounds of another set."""

    name = OURS_UNCOMPRESSED

    def __init__(self, bench: Bench, value_bytes: int) -> None:
        self._reader = OurReader(bench, bench.base(value_bytes, "none"))
        self.records = self._reader.records
        self.log_bytes = self._reader.log_bytes

    def check(self) -> None:
        self._reader.check()

    def repeat(self) -> Run:
        return self._reader.repeat()


@dataclass(slots=True)
class SetResult:
    """The figures of one data set by peer, and why a peer is missing."""

    data_set: DataSet
    figures: dict[str, Figure] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@contextlib.contextmanager
def _readers(
    bench: Bench, data_set: DataSet, tools: JavaTools | None, notes: list[str]
) -> Iterator[dict[str, Reader]]:
    """Open every reader of one data set that this machine has."""
    readers: dict[str, Reader] = {
        OURS: OurReader(bench, data_set),
        AIOKAFKA: aiokafka_reader(bench, data_set),
    }
    is_current = data_set.magic == CURRENT_MAGIC
    if is_current:
        try:
            readers[KAFKA_PYTHON] = kafka_python_reader(bench, data_set)
        except NotHereError as error:
            notes.append(str(error))
    if is_current and data_set.codec != "none":
        readers[CODEC_ALONE] = CodecReader(bench, data_set)
        readers[OURS_UNCOMPRESSED] = _Uncompressed(bench, data_set.value_bytes)
    with contextlib.ExitStack() as stack:
        if tools is not None:
            jvm = stack.enter_context(Jvm(tools, FILE_RECORDS))
            readers[JAVA] = JavaReader(jvm, bench, data_set)
        yield readers


def read_sets(
    bench: Bench,
    sets: Sequence[DataSet],
    rounds: int,
    tools: JavaTools | None,
    say: Callable[[str], None],
) -> list[SetResult]:
    """Return a result for each data set."""
    results = []
    for data_set in sets:
        result = SetResult(data_set)
        say(f"reading {data_set.name}")
        with _readers(bench, data_set, tools, result.notes) as readers:
            figures = rounds_of(list(readers.values()), rounds)
            result.figures = dict(zip(readers, figures, strict=True))
        results.append(result)
    return results
