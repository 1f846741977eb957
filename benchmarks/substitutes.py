"""Part ``substitutes``: Arrow's codecs, which stand in for libraries without a wheel, against them.

Two processes of pylog read a data set in turns, then compress its records in turns; in one of them
no codec library can be imported.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.data_sets import Bench, DataSet
from benchmarks.measuring import Figure, Run, ensure_equal, rounds_of
from benchmarks.substituted import READ, STAND_INS, WRITE
from tests.support.peer_process import PeerProcess

VALUE_BYTES = 1000
CODECS = ("snappy", "lz4", "zstd")
WORKS = (READ, WRITE)
_LIBRARIES = ("cramjam", "lz4", "lz4.block", "zstandard")
_PROGRAM = "from benchmarks.substituted import main; main()"
_HIDDEN = f"import sys; sys.modules.update(dict.fromkeys({_LIBRARIES!r})); {_PROGRAM}"


@dataclass(slots=True)
class SubstitutesResult:
    """Figures by what is done and codec, with the libraries and with Arrow in their place."""

    libraries: dict[tuple[str, str], Figure] = field(default_factory=dict)
    arrow: dict[tuple[str, str], Figure] = field(default_factory=dict)


class _Passes:
    """One of the processes, doing one thing."""

    def __init__(self, process: PeerProcess, work: str, data_set: DataSet) -> None:
        self._process = process
        self._work = work
        self.name = f"{process.name}: {work} {data_set.name}"
        self.records = data_set.records
        self.log_bytes = data_set.log_bytes

    def check(self) -> None:
        """Compare how many records there are with what was written."""
        self.repeat()

    def repeat(self) -> Run:
        seconds, cpu_seconds, records = self._process.ask(self._work).split()
        ensure_equal(self.name, int(records), self.records)
        return Run(float(seconds), float(cpu_seconds))


def measure_substitutes(bench: Bench, rounds: int, say: Callable[[str], None]) -> SubstitutesResult:
    """Return the figures of each codec."""
    result = SubstitutesResult()
    for codec in CODECS:
        say(f"substitutes: {codec}")
        data_set = bench.base(VALUE_BYTES, codec)
        with ExitStack() as stack:
            processes = [
                stack.enter_context(PeerProcess(name, _command(bench, data_set, program)))
                for name, program in (("libraries", _PROGRAM), ("Arrow", _HIDDEN))
            ]
            answers = [process.ask(STAND_INS).split() for process in processes]
            ensure_equal("stand-ins", answers, [[], list(CODECS)])
            for work in WORKS:
                passes = [_Passes(process, work, data_set) for process in processes]
                figures = rounds_of(passes, rounds)
                result.libraries[work, codec], result.arrow[work, codec] = figures
    return result


def _command(bench: Bench, data_set: DataSet, program: str) -> list[str]:
    directory = bench.directory(data_set.name).resolve()
    return [sys.executable, "-c", program, str(directory), data_set.codec]
