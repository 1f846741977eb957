"""``python -m tests.fuzz``: fuzz one target or all, run an input again, or keep what was found."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.corpus import pack
from tests.fuzz.process import Result, fuzz, minimise, reproduce
from tests.fuzz.targets import TARGETS

DEFAULT_SECONDS = 60


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, help="default: all, one after the other")
    parser.add_argument(
        "--seconds", type=int, default=DEFAULT_SECONDS, help="for each target (default: 60)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="so many targets at once (default: 1)")
    parser.add_argument(
        "--golden", action="store_true", help="start from the files of the golden archives too"
    )
    parser.add_argument(
        "--reproduce", type=Path, nargs="+", metavar="FILE", help="run the target with these inputs"
    )
    parser.add_argument(
        "--keep", action="store_true", help="minimise what was found into tests/fuzz/corpus"
    )
    arguments = parser.parse_args()
    if arguments.reproduce and not arguments.target:
        parser.error("--reproduce needs --target")
    return arguments


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def _fuzz_all(targets: list[str], arguments: argparse.Namespace) -> int:
    def run(target: str) -> Result:
        return fuzz(target, arguments.seconds, with_golden=arguments.golden, say=_say)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(run, targets))
    for result in results:
        sys.stdout.write("".join(f"{line}\n" for line in result.lines()))
    return int(any(result.status for result in results))


def main() -> int:
    """Do what the command line asks for, and return the exit status: 1 at any crash."""
    arguments = _arguments()
    if importlib.util.find_spec("atheris") is None:
        _say("atheris is not installed: it has wheels for Linux on x86-64 only")
        return 2
    targets = [arguments.target] if arguments.target else list(TARGETS)
    if arguments.reproduce:
        return int(reproduce(arguments.target, arguments.reproduce, _say) != 0)
    if arguments.keep:
        for target in targets:
            size = pack(target, minimise(target, _say))
            _say(f"{target}: corpus of {size:,} bytes")
        return 0
    return _fuzz_all(targets, arguments)


if __name__ == "__main__":
    sys.exit(main())
