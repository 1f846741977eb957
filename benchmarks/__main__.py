"""``python -m benchmarks``: measure, and write the data file that the pages are made from."""

import argparse
import json
import os
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.batches import CODECS
from benchmarks.cleaning import measure_cleaning
from benchmarks.counting import count_sets
from benchmarks.data_sets import Bench
from benchmarks.dumping import measure_dumping
from benchmarks.encoding import encode_sets
from benchmarks.examining import examine_sets
from benchmarks.figures import (
    FORMAT,
    PUBLISHED,
    Document,
    Figures,
    is_loaded,
    load_refusal,
    text_of,
)
from benchmarks.following import measure_following
from benchmarks.java_peer import JavaTools, java_tools
from benchmarks.job_commits import measure_job_commits
from benchmarks.kafka_source import measure_kafka_source
from benchmarks.legacy_sets import LEGACY_SETS, legacy_name, legacy_set
from benchmarks.log_statistics import measure_statistics
from benchmarks.machine import load_average, this_machine
from benchmarks.measuring import NotHereError
from benchmarks.memory import measure_memory
from benchmarks.owned_logs import measure_owned_logs
from benchmarks.planning import measure_planning
from benchmarks.printing import print_records
from benchmarks.pruning import measure_pruning
from benchmarks.reading import read_sets
from benchmarks.remote import measure_remote
from benchmarks.report import tables_of
from benchmarks.results import Results
from benchmarks.searching import measure_search
from benchmarks.serving import measure_serving
from benchmarks.spark_cleaning import measure_spark_cleaning
from benchmarks.spark_scan import scan_by_spark
from benchmarks.spark_small import measure_small
from benchmarks.spark_typed import measure_spark_typed
from benchmarks.spark_write import measure_spark_writes
from benchmarks.sparse_log import look_up_in_sparse_log
from benchmarks.start_up import CommandFailedError, measure_start_up
from benchmarks.substitutes import measure_substitutes
from benchmarks.summary import raw_page
from benchmarks.targets import targets
from benchmarks.threads import measure_threads

ROUNDS = 7
QUICK_ROUNDS = 3
VALUE_SIZES = (100, 1000)
BUILD = Path(__file__).parents[1] / "build"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the data, 3 rounds")
    parser.add_argument(
        "--only",
        metavar="SUBSTRING",
        default="",
        help="only what has this in its name: s100-none … s1000-zstd, s100-v0-none … s1000-v1-lz4, "
        "spark-100B, spark-1000B, encode, own, cleaning, commit, count, cat, dump, doctor, stats, "
        "search, memory, look-up, planning, following, serving, pruning, spark-small, "
        "spark-compact, spark-kafka, spark-typed, spark-write, remote, start-up, threads, "
        "substitutes",
    )
    parser.add_argument(
        "--large",
        action="store_true",
        help="clean partitions of 4 GB, not of 400 MB; by Spark one of 2 GB, and 1,000 of 1 MB",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help=f"default {ROUNDS}")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        default=BUILD / "bench.json",
        help="the data file; default %(default)s",
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help=f"write {PUBLISHED} too; refused on a busy machine, or if a part is missing",
    )
    parser.add_argument(
        "--continue",
        dest="earlier",
        type=Path,
        metavar="FILE",
        help="the data file of a run that has ended early: what --only does not measure now is "
        "taken from it",
    )
    arguments = parser.parse_args()
    is_part = arguments.only and arguments.earlier is None
    if arguments.publish and (arguments.quick or is_part):
        parser.error("--publish needs a whole run: leave out --quick and --only")
    return arguments


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def _java(results: Results) -> JavaTools | None:
    try:
        return java_tools(BUILD)
    except NotHereError as error:
        results.notes.append(f"the rows of Kafka's Java classes: {error}")
        return None


def _spark(results: Results, bench: Bench, sizes: list[int], rounds: int) -> None:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        results.notes.append("the Spark part: no Java")
    else:
        results.spark = scan_by_spark(bench, sizes, rounds, _say)


def _start_up(results: Results, bench: Bench) -> None:
    try:
        results.start_up = measure_start_up(bench, _say)
    except CommandFailedError as error:  # minutes of other figures are not to be lost over it
        results.notes.append(f"start-up: {error}")


def _measure_commands(results: Results, bench: Bench, only: str, rounds: int) -> None:
    if only in "cat":
        results.printing = print_records(bench, rounds, _say)
    if only in "search":
        results.searches = measure_search(bench, rounds, _say)
    if only in "dump":
        _dumping(results, bench, rounds)
    if only in "stats":
        results.statistics = measure_statistics(bench, rounds, _say)
    if only in "doctor":
        results.examined = examine_sets(bench, rounds, _say)


def _measure_scale(results: Results, bench: Bench, only: str, rounds: int) -> None:
    if only in "threads":
        results.threads = measure_threads(bench, rounds, _say)
    if only in "substitutes":
        results.substitutes = measure_substitutes(bench, rounds, _say)
    if only in "cleaning":
        _cleaning(results, bench, rounds)
    if only in "commit":
        results.commits = measure_job_commits(bench, min(rounds, 3), _say)
    if only in "look-up":
        results.look_ups = look_up_in_sparse_log(bench, _say)
    if only in "planning":
        results.planning = measure_planning(bench, rounds, _say)
    if only in "following":
        results.following = measure_following(bench, rounds, _say)
    if only in "serving":
        _serving(results, bench, rounds)
    if only in "remote":
        results.remote = measure_remote(bench, _say)


def _measure_spark(results: Results, bench: Bench, only: str, rounds: int) -> None:
    names = ("pruning", "spark-small", "spark-compact", "spark-kafka", "spark-typed", "spark-write")
    parts = [part for part in names if only in part]
    if parts and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        results.notes.append(f"the parts {', '.join(parts)}: no Java")
        return
    if "pruning" in parts:
        results.pruning = measure_pruning(bench, rounds, _say)
    if "spark-small" in parts:
        results.small = measure_small(bench, rounds, _say)
    if "spark-compact" in parts:
        results.spark_cleaning = measure_spark_cleaning(bench, rounds, _say)
    beside_brokers: dict[str, tuple[str, Any, str]] = {
        "spark-kafka": ("kafka_source", measure_kafka_source, "the rows of Spark's kafka source"),
        "spark-typed": ("typed", measure_spark_typed, "typed values in Spark"),
        "spark-write": ("writes", measure_spark_writes, "writes by Spark"),
    }
    for part, (name, measure, what) in beside_brokers.items():
        if part in parts:
            try:
                setattr(results, name, measure(bench, rounds, _say))
            except NotHereError as error:
                results.notes.append(f"{what}: {error}")


def _serving(results: Results, bench: Bench, rounds: int) -> None:
    try:
        results.serving, results.first_record = measure_serving(bench, min(rounds, 3), _say)
    except NotHereError as error:
        results.notes.append(f"serving: {error}")


def _dumping(results: Results, bench: Bench, rounds: int) -> None:
    try:
        results.dumping = measure_dumping(bench, min(rounds, 5), _say)
    except NotHereError as error:
        results.notes.append(f"dumping: {error}")


def _cleaning(results: Results, bench: Bench, rounds: int) -> None:
    try:
        results.cleaning = measure_cleaning(bench, min(rounds, 3), _say)
    except NotHereError as error:
        results.notes.append(f"cleaning: {error}")


def measure(
    results: Results, bench: Bench, only: str, rounds: int, versions: dict[str, str]
) -> None:
    """Measure the parts with `only` in their names; `versions` gets what else ran them."""
    sets = [(v, c) for v in VALUE_SIZES for c in CODECS if only in f"s{v}-{c}"]
    spark_sizes = [v for v in VALUE_SIZES if only in f"spark-{v}B"]
    legacy = [each for each in LEGACY_SETS if only in legacy_name(*each)]
    tools = _java(results) if sets or legacy or only in "encode" else None
    if tools is not None:
        versions |= tools.versions
    if sets or legacy:
        _say("data sets")
        bench.prepare(sorted({value_bytes for value_bytes, _ in sets}))
        data_sets = [bench.base(*each) for each in sets]
        data_sets += [legacy_set(bench, *each) for each in legacy]
        results.sets = read_sets(bench, data_sets, rounds, tools, _say)
        results.notes += [note for result in results.sets for note in result.notes]
    if only in "encode":
        results.encoding = encode_sets(bench, VALUE_SIZES, rounds, tools, _say)
    if only in "own":
        results.own = measure_owned_logs(bench, VALUE_SIZES, rounds, _say)
    if spark_sizes:
        _spark(results, bench, spark_sizes, rounds)
    if only in "count":
        results.counts = count_sets(bench, rounds, _say)
    _measure_commands(results, bench, only, rounds)
    if only in "memory":
        results.memory = measure_memory(bench, _say)
    _measure_scale(results, bench, only, rounds)
    _measure_spark(results, bench, only, rounds)
    if only in "start-up":
        _start_up(results, bench)


def document_of(results: Results, head: Document) -> Document:
    """Return the data file of a run; `head` says where and when it ran."""
    return {
        "format": FORMAT,
        **head,
        "left_out": results.notes,
        "targets": [asdict(each) for each in targets(results)],
        "tables": [asdict(each) for each in tables_of(results)],
    }


def continued(document: Document, earlier: Document) -> Document:
    """Return what two runs have measured: of what both have, the later one's."""
    if earlier["date"] != document["date"]:
        msg = f"measured on {earlier['date']}, not on {document['date']}: measure all of it again"
        raise SystemExit(msg)
    versions = earlier["machine"]["versions"] | document["machine"]["versions"]
    merged = document | {"machine": document["machine"] | {"versions": versions}}
    for name, key in (("targets", "text"), ("tables", "title")):
        new = {each[key]: each for each in document[name] if each.get("met", "") is not None}
        old = {each[key]: each for each in earlier[name]}
        merged[name] = [new.get(each, old.get(each)) for each in {**old, **new}]
    merged["left_out"] = list(dict.fromkeys(earlier["left_out"] + document["left_out"]))
    return merged


def main() -> int:
    """Run the benchmarks that the command line asks for; return the exit status."""
    arguments = _arguments()
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    machine, load = this_machine(), load_average()
    if arguments.publish and is_loaded(machine, load):
        _say(f"not started: {load_refusal(machine, load)}")
        return 1
    bench = Bench(BUILD / "bench", quick=arguments.quick, large=arguments.large)
    results = Results()
    head = {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python -m benchmarks", *sys.argv[1:]]),
        "machine": machine,
    }
    complete = False
    try:
        measure(results, bench, arguments.only, rounds, machine["versions"])
        complete = True
    finally:  # what a part that fails leaves unmeasured must not cost the figures before it
        head["load_average"] = {"before": load, "after": load_average()}
        document = document_of(results, head)
        if arguments.earlier is not None:
            earlier = json.loads(arguments.earlier.read_text(encoding="utf-8"))
            document = continued(document, earlier)
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text_of(document), encoding="utf-8")
        sys.stdout.write(raw_page(Figures(document)))
        _say(f"written to {arguments.output}")
    unmeasured = [each["text"] for each in document["targets"] if each["met"] is None]
    if arguments.publish and unmeasured:
        _say(f"not published: {len(unmeasured)} targets were not measured: {unmeasured[0]}, …")
        return 1
    if arguments.publish and complete:
        (BUILD.parent / PUBLISHED).write_text(text_of(document), encoding="utf-8")
        _say(f"written to {PUBLISHED}; now make the pages: make import-graph")
    return 0


if __name__ == "__main__":
    sys.exit(main())
