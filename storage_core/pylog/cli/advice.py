"""What was probably meant: one sentence about a command, an option, a value or a path.

Each function returns the end of an error's line, or "" where nothing is likely. A line of another
tool (``kcat``, ``kafka-console-consumer``, ``tail``, ``grep``) is answered with ours.
"""

from __future__ import annotations

import difflib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pylog
from pylog.errors import LogDirectoryError, LogStorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import click

_SIMILAR = 0.7
"""The least ratio of `difflib` for a suggestion: ``--grep`` is not ``--replica``."""

_DOCTOR = "pylog doctor PATH finds what is wrong"
_REPAIR = "pylog doctor PATH --repair-to DIR writes a repaired copy"
_CAT = "pylog cat PATH --topic T prints records"
_SEARCH = "pylog search PATH TEXT prints records with this text"
_SQL = "pylog sql PATH 'SELECT ...' queries records"
_APPEND = "pylog append DIR FILE --topic T appends records"
_EXPORT = "pylog export PATH --topic T --to FILE writes records to a file"
_TOPICS = "pylog topics PATH describes topics"
_REMOVE = (
    "pylog delete-records DIR removes the oldest records of a partition, pylog truncate DIR the "
    "latest ones"
)

_COMMANDS = {
    **dict.fromkeys(("check", "fsck", "verify", "validate", "diagnose", "health"), _DOCTOR),
    **dict.fromkeys(("repair", "fix", "recover", "restore", "rescue"), _REPAIR),
    "tail": "pylog cat PATH --last 10 prints the last records of each partition, --follow new ones",
    "head": "pylog cat PATH --limit 10 prints the first records",
    **dict.fromkeys(("consume", "read", "print", "consumer", "records", "scan", "get"), _CAT),
    **dict.fromkeys(("dump-log", "kafka-dump-log"), "pylog dump PATH prints what that prints"),
    **dict.fromkeys(("start", "run", "server"), "pylog serve PATH serves it to Kafka clients"),
    **dict.fromkeys(("grep", "find", "filter"), _SEARCH),
    **dict.fromkeys(("query", "select", "duckdb"), _SQL),
    "count": "pylog sql PATH 'SELECT count(*) FROM records' counts records",
    **dict.fromkeys(("produce", "write", "producer", "insert"), _APPEND),
    **dict.fromkeys(("list", "dir", "offsets", "partitions"), "pylog ls PATH lists partitions"),
    **dict.fromkeys(("describe", "show", "topic"), _TOPICS),
    **dict.fromkeys(("lag", "group", "consumers"), "pylog groups PATH lists groups and their lag"),
    **dict.fromkeys(("segments", "size", "du"), "pylog stats PATH shows what logs are made of"),
    **dict.fromkeys(("delete", "remove", "rm"), _REMOVE),
    "create": "pylog create-topic DIR --topic T creates a topic",
    "alter": "pylog alter-topic DIR --topic T --config KEY=VALUE changes a topic",
    "delete-topic": "in Python, pylog.delete_topic(DIR, T) deletes a topic",
    **dict.fromkeys(("backup", "copy", "cp", "convert", "save"), _EXPORT),
    **dict.fromkeys(("import", "load", "ingest"), _APPEND),
    **dict.fromkeys(("inspect", "open", "view"), "pylog browse PATH opens it in the terminal"),
    "timeline": "pylog stats PATH --topic T --timeline FILE writes the page",
    "ui": "pylog browse PATH is a browser in the terminal",
    "version": "pylog --version prints the version",
}
"""What other tools call a command; other words are compared with our commands by their letters."""

_BROKER = (
    "pylog asks no broker: give PATH, a log directory (an entry of the broker's log.dirs); a topic "
    "is chosen with --topic"
)
_LIMIT = "--limit N stops after N records"
_LAST = "--last N prints the last N records of each partition"

_OPTIONS: tuple[tuple[tuple[str, ...], str | None, str], ...] = (
    (
        ("--bootstrap-server", "--bootstrap-servers", "--broker-list", "--broker", "-b"),
        None,
        _BROKER,
    ),
    (("--brokers", "--zookeeper"), None, _BROKER),
    (("--limit", "-n", "-c"), "sql", "write LIMIT in the query"),
    (("--file", "--input"), "sql", 'give its text: "$(cat FILE)"'),
    (("--file", "--input"), "append", "give FILE after DIR, or lines on standard input"),
    (("--format", "--output-format", "-o"), "sql", "--csv prints CSV, --json JSON lines"),
    (("--all", "-a", "--long", "-l"), "ls", "leave it out: all is listed"),
    (("--topic", "-t", "--topics"), "groups", "leave it out, or choose a group: --group G"),
    (
        ("--reset-offsets", "--to-earliest", "--to-latest", "--to-offset"),
        "groups",
        "pylog restore-groups writes offsets to the directory of a stopped node",
    ),
    (("--create",), "topics", "pylog create-topic DIR --topic T creates a topic"),
    (("--alter", "--config"), "topics", "pylog alter-topic DIR --topic T changes a topic"),
    (("--delete",), "topics", "in Python, pylog.delete_topic(DIR, T) deletes a topic"),
    (("--abort",), "transactions", "kafka-transactions abort ends one, on a running cluster"),
    (("--keys", "--top-keys", "--hot-keys"), "--sample", "use --sample, or --full"),
    (("--group", "-g", "-G"), "--last", "pylog groups PATH --group G shows a group's offsets"),
    (
        ("--print-key", "--print-keys", "--property", "--formatter"),
        "--last",
        "keys are printed anyway; --format text prints key, tab and value",
    ),
    (("--deep", "--full", "--thorough"), "--repair-to", "leave it out: all is read"),
    (("--quiet", "-q", "--silent"), "--repair-to", "the exit status says it: > /dev/null"),
    (("-n",), "--last", f"{_LIMIT}; {_LAST}"),
    (("-n",), "--limit", _LIMIT),
    (("--max-messages", "--head", "--count"), "--limit", _LIMIT),
    (("--tail",), "--last", f"{_LAST}; --follow waits for new ones"),
    (("--from-beginning",), "--start-offset", "that is the default"),
    (("--offset",), "-o", "use -o OFFSET, or --start-offset and --end-offset"),
    (("--from",), "--start-offset", "use --start-offset N, or --start-timestamp TIME"),
    (("--to", "--end"), "--end-offset", "use --end-offset N (exclusive), or --end-timestamp TIME"),
    (("--since", "--from"), "--start-timestamp", "use --start-timestamp -2h, or an ISO time"),
    (("--until",), "--end-timestamp", "use --end-timestamp -2h, or an ISO time"),
    (
        ("--grep", "--contains", "--text", "--filter", "--value"),
        "--value-contains",
        "use --value-contains TEXT",
    ),
    (("--grep", "--contains", "--filter", "--value"), "--key", _SEARCH),
    (
        ("--where",),
        "--key",
        "pylog search PATH --value-format auto --where CONDITION prints records by their fields",
    ),
    (("--json",), "--format", "use --format jsonl, the default in a pipe"),
    (("--csv", "--output", "--out"), "--format", "pylog export PATH --to FILE.csv writes a file"),
    (("--format",), "--to", "the end of --to FILE says it: .parquet, .arrow, .csv or .jsonl"),
    (("--format", "--output-format", "-o"), "--json", "--json prints JSON"),
    (("--json-lines", "--jsonl"), "--json", "--json prints JSON"),
    (("--output", "--out", "--file"), "--to", "use --to FILE"),
    (("--output", "--out"), "--html", "use --html FILE for a page"),
    (("--fix", "--repair", "--output", "--to", "--copy-to"), "--repair-to", "use --repair-to DIR"),
    (
        (
            "--skip-errors",
            "--ignore-errors",
            "--force",
            "--lenient",
            "--permissive",
            "--skip-damaged",
        ),
        "--mode",
        "use --mode DROPMALFORMED",
    ),
    (("--regex", "--regexp", "-e"), "--value-regex", "use --value-regex PATTERN"),
    (("-e", "-q", "--query", "--execute", "--sql"), "--csv", "give the query in quotes after PATH"),
    (("--pretty",), "--format", "use --format pretty, the default in a terminal"),
    (("--open",), "--max-timeout", "that is the default; --all lists all"),
    (("--lag",), "--group", "leave it out"),
    (("--dry-run",), "--repair-to", "leave it out: nothing is changed"),
    (
        ("--value", "--message", "--property"),
        "--batch-size",
        "give lines in FILE or on standard input",
    ),
    (("--replication-factor", "--replicas"), "--partitions", "a directory holds one replica of it"),
    (("--describe", "--list", "--all-groups", "--all-topics"), "--topic", "leave it out"),
    (("--describe", "--list", "--all-groups", "--all"), "--group", "leave it out"),
    (("-p",), "--port", "use --port PORT"),
    (("-V", "-v", "--Version"), "--version", "use --version"),
    (
        ("--no-color", "--nocolor", "--colour"),
        None,
        "use NO_COLOR=1 in the environment, or --color",
    ),
)
"""Options of other tools; an option of the commands that the sentence is for, or one's name."""

_DATA_FILES = (".parquet", ".arrow", ".csv", ".jsonl")
_ADDRESS = re.compile(r"[\w.-]+:\d{1,5}", re.ASCII)


def about_command(name: str, known: Iterable[str]) -> str:
    """Return what to type for a command that does not exist."""
    if name in _COMMANDS:
        return f"; {_COMMANDS[name]}"
    if _ADDRESS.fullmatch(name):
        return f"; {_BROKER}"
    if "/" in name or os.path.lexists(name):
        return f"; a path comes after a command: pylog ls {name} lists what is there"
    return _did_you_mean(name, known)


def about_option(name: str, context: click.Context | None) -> str:
    """Return what a command has for an option that it has not."""
    has = _options_of(context)
    command = "" if context is None else context.info_name
    for names, needed, sentence in _OPTIONS:
        if name in names and (needed is None or needed in (command, *has)):
            return f"; {sentence}"
    dotted = name.lstrip("-").replace("-", ".")
    if "--config" in has and dotted in pylog.LogConfig().properties():
        return f"; use --config {dotted}=VALUE"
    return _did_you_mean(name, has)


def about_usage(text: str, context: click.Context | None) -> str:
    """Return what to do about an error of click's, by its text."""
    has = _options_of(context)
    if match := re.search(r"unexpected extra argument \((\S+)\)", text):
        word = match[1]
        if "=" in word and "--config" in has:
            return f"; use --config {word}"
        if "--topic" in has:
            return f"; use --topic {word}"
    if context is not None and context.info_name == "demo" and "missing argument" in text.lower():
        return ", such as pylog demo kafka"
    if re.search(r"(?i)missing argument '(PATH|DIR)", text):
        return (
            "; give a log directory (an entry of log.dirs); pylog demo kafka unpacks one to try"
            if "--topic" in has or "--repair-to" in has
            else ""
        )
    if match := re.search(r"(?i)missing option '--(to|topic)'", text):
        return _about_missing(match[1], context)
    if "'-f'" in text and "requires an argument" in text and "--follow" in has:
        return "; --follow waits for new records"
    return _about_value(text, has)


def _about_missing(option: str, context: click.Context | None) -> str:
    """Return the word that stands where the option's value was meant."""
    given = _arguments(context)[1:]  # after the command
    words = [word for word in given if not word.startswith("-") and not os.path.exists(word)]  # noqa: PTH110
    if option == "to":
        words = [word for word in words if word.endswith(_DATA_FILES)]
        if words:
            return f"; use --to {words[-1]}"
        return (
            ", such as --to orders.parquet"
            if "--columns" in _options_of(context)
            else "; use --to DIR"
        )
    for word in words:
        if (match := re.fullmatch(r"(.+)-(\d+)", word)) and "--partition" in _options_of(context):
            return f"; use --topic {match[1]} --partition {match[2]}"
    return f"; use --topic {words[-1]}" if words and given[0] != words[-1] else ""


def _about_value(text: str, has: Sequence[str]) -> str:
    match = re.search(r"'(?:--\w[\w-]*|-\w)'[^:]*: '([^']*)' is not (.*)", text)
    if match is None:
        return ""
    value, rest = match.groups()
    if rest.startswith("a whole number") and value.lower() in ("all", "*"):
        return "; leave it out for all"
    if rest.startswith("one of"):
        return _about_word_of_a_choice(value, text, has)
    if "'--partition'" in text and (numbers := _numbers(value)):
        return f"; give each of them: {' '.join(f'-p {number}' for number in numbers)}"
    if "'-o'" in text and value.endswith(_DATA_FILES) and "--to" in has:
        return f"; --to {value} names the file"
    if re.match(r"\d{4}-\d\d", value) and "--start-timestamp" in has and "not a time" not in rest:
        return f"; --start-timestamp {value} takes a time"
    return ""


def _about_word_of_a_choice(value: str, text: str, has: Sequence[str]) -> str:
    if value == "csv" and "--follow" in has:
        return "; pylog export PATH --to FILE.csv writes CSV"
    if value.lower() in ("drop", "skip", "ignore", "lenient") and "'--mode'" in text:
        return "; DROPMALFORMED skips what is damaged"
    return _did_you_mean(value, re.findall(r"'([^']*)'", text.partition(" is not one of")[2]))


def _numbers(text: str) -> Sequence[int]:
    """Return what ``0,1`` or ``0-3`` lists; no more than fit into a line."""
    if match := re.fullmatch(r"(\d{1,5})-(\d{1,5})", text):
        return range(int(match[1]), int(match[2]) + 1)[:10]
    return (
        [int(each) for each in text.split(",")] if re.fullmatch(r"\d{1,9}(,\d{1,9})+", text) else ()
    )


def about_path(error: Exception, arguments: Sequence[str]) -> str:
    """Return what a path that leads nowhere was meant for; ``arguments`` are all of the line."""
    if not isinstance(error, LogDirectoryError) or error.path is None:
        return ""
    path = str(error.path)
    if os.path.isfile(path):  # noqa: PTH113 - as typed
        return _about_file(path)
    if os.path.lexists(path) or "://" in path:
        return ""
    return (
        _about_form(path, arguments)
        or _about_place(path, arguments)
        or _about_word(path, arguments)
    )


_URI = re.compile(r"(s3a?|gs|az|abfss?|hdfs|viewfs|file):/?([^/].*)")


def _about_form(path: str, arguments: Sequence[str]) -> str:
    """Return advice about a path whose form shows a mistake."""
    if _ADDRESS.fullmatch(path):
        return f"; {_BROKER}"
    if path.endswith(_DATA_FILES) and arguments[0] == "export":
        return f"; --to {path} names the file to write"
    if match := _URI.fullmatch(path):
        return f"; did you mean {match[1]}://{match[2]}?"
    if any(sign in path for sign in "*?["):
        return "; wildcards are the shell's: without quotes it expands them"
    if path.upper() in ("SELECT", "WITH", "FROM") and arguments[0] == "sql":
        return "; quote the whole query"
    if path == "help":
        return f"; pylog {arguments[0]} --help prints the help"
    return ""


def _about_place(path: str, arguments: Sequence[str]) -> str:
    """Return what there is of similar names, in its directory or in the other paths."""
    place, name = os.path.split(path.rstrip("/"))
    others = [each for each in arguments[1:] if each != path and os.path.isdir(each)]  # noqa: PTH112
    for each in [place] if place else others:
        if hint := _about_partition(each, name):
            return f"; {hint}"
    return ""


def _about_word(path: str, arguments: Sequence[str]) -> str:
    if not re.fullmatch(r"[\w.-]+", path):
        return ""
    if arguments[0] == "groups":
        return f"; if it is a group, use --group {path}"
    return f"; if it is a topic, give its log directory and --topic {path}"


def _about_file(path: str) -> str:
    if path.endswith((".index", ".timeindex", ".txnindex", ".snapshot", "checkpoint")):
        return f"; pylog dump {path} prints it"
    if path.endswith(".log"):
        return f"; pylog cat {path} prints its records"
    return ""


def _about_partition(place: str, name: str) -> str:
    """Return which topic or partition of a directory a name was meant to be."""
    topics: list[str] = []
    with suppress(LogStorageError, ValueError, OSError):
        topics = list(pylog.open_directory(place).topics)
    if name in topics:
        return f"{name} is a topic in {place}: give {place} --topic {name}"
    there = sorted(each.name for each in Path(place).iterdir()) if os.path.isdir(place) else []  # noqa: PTH112
    topic, dash, number = name.rpartition("-")
    if dash and topic in topics and number.isdecimal():
        found = [each for each in there if each.rpartition("-")[0] == topic]
        return f"{place} has {', '.join(found)}"
    near = difflib.get_close_matches(name, [*topics, *there], n=1, cutoff=_SIMILAR)
    if not near:
        return ""
    if near[0] in topics:
        return f"did you mean {place} --topic {near[0]}?"
    return f"did you mean {os.path.join(place, near[0])}?"  # noqa: PTH118 - as typed


def _options_of(context: click.Context | None) -> list[str]:
    if context is None:
        return []
    options = (option for parameter in context.command.params for option in parameter.opts)
    return [each for each in options if each.startswith("-")]


def _arguments(context: click.Context | None) -> Sequence[str]:
    """Return all arguments of the line, the command first."""
    return () if context is None else context.find_root().obj or ()


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    by_small = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), by_small, n=1, cutoff=_SIMILAR)
    return f". Did you mean {by_small[near[0]]!r}?" if near else ""
