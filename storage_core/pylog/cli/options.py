"""Arguments and options that several commands share, and how help explains them."""

from __future__ import annotations

import textwrap
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

import pylog
from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    CommandFunction = Callable[..., int]
    Decorator = Callable[[CommandFunction], CommandFunction]


class DocumentedArgument(click.Argument):
    """A click argument with a help text and an explicit metavar, which messages call it by."""

    def __init__(
        self,
        declarations: Sequence[str],
        *,
        metavar: str,
        help_text: str,
        **attributes: Any,  # noqa: ANN401 - click's own
    ) -> None:
        super().__init__(declarations, metavar=metavar, **attributes)
        self.help_record = (metavar, help_text)

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the metavar, in brackets if it may be left out, with dots if it repeats."""
        metavar = self.help_record[0]
        return [(metavar if self.required else f"[{metavar}]") + "..." * (self.nargs == -1)]


SHARED = (
    *("--storage-option", "--include-stray", "--replica", "--ignore-indexes"),
    *("--leave-page-cache", "--recover-as-broker", "--color"),
)
"""Options of many commands that a user rarely needs: help lists them last."""

_LESS_NEEDED = (
    *("--isolation", "--pattern", "--start-offset", "--end-offset", "--end-timestamp"),
    *("--min-timestamp", "--max-timestamp", "--trust-batch-timestamps", "--kafka-version"),
    *(
        "--as-user",
        "--server-properties",
        "--high-watermark",
        "--now",
        "--threads",
        "--max-decompressed-bytes",
    ),
)
"""What is left out first where there is no room."""

NAMES_SHARED = "pylog.names_shared"
"""In the ``meta`` of a context: help only names the options of many commands."""

_SCREEN_LINES = 23  # of a terminal of 24, whose prompt takes one
_SCREEN_WIDTH = 79
_EXAMPLES_ON_SCREEN = 3


_UNBROKEN_HYPHEN = "\N{NON-BREAKING HYPHEN}"


class HelpFormatter(click.HelpFormatter):
    """Wraps lines between words alone: click breaks options at their hyphens, too."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(_unbroken(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write terms, and what they mean beside them."""
        super().write_dl([(term, _unbroken(text)) for term, text in rows], col_max, col_spacing)

    def write(self, string: str) -> None:
        """Write what is wrapped already."""
        super().write(string.replace(_UNBROKEN_HYPHEN, "-"))


def _unbroken(text: str) -> str:
    return text.replace("-", _UNBROKEN_HYPHEN)


class HelpContext(click.Context):
    """The context of a command whose help is written by `HelpFormatter`."""

    formatter_class = HelpFormatter


class DocumentedCommand(click.Command):
    """A command that lists its arguments before its options, and ends its help with examples.

    ``-h`` prints one screen: examples first, then the options that are needed most.
    """

    context_class = HelpContext

    examples: Sequence[str] = ()  # lines to be typed into a shell

    def short_help_lines(self, ctx: click.Context) -> Iterator[str]:
        """Yield the lines of the screen that ``-h`` prints."""
        yield f"{(self.help or '').splitlines()[0]}"
        yield ""
        fitting = [line for line in self.examples if len(line) + 2 <= _SCREEN_WIDTH]
        examples = (fitting or self.examples)[:_EXAMPLES_ON_SCREEN]
        yield from (f"  {line}" for line in examples)
        yield ""
        yield f"Usage: {ctx.command_path} {' '.join(self.collect_usage_pieces(ctx))}"
        options = sorted(self._options(is_shared=False), key=_is_less_needed)
        options += self._options(is_shared=True)
        room = _SCREEN_LINES - len(examples) - 7
        width = max((len(_short_names(each)) for each in options[:room]), default=0) + 2
        for each in options[:room]:
            line = f"  {_short_names(each):{width}}{each.help or ''}"
            yield _cut(line, _SCREEN_WIDTH)
        rest = ", ".join(max(each.opts, key=len) for each in options[room:])
        yield ""
        lines = textwrap.wrap(
            f"--help explains these and {rest}" if rest else "--help explains them.",
            _SCREEN_WIDTH,
            break_on_hyphens=False,
        )
        yield from lines[:2]

    def _options(self, *, is_shared: bool) -> list[click.Option]:
        return [
            each
            for each in self.params
            if isinstance(each, click.Option)
            and each.opts != ["-h"]
            and (each.opts[0] in SHARED) == is_shared
        ]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each as one line, however long it is: it is to be copied."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the section of options, and that of arguments if the command has some."""
        arguments = [each for each in self.params if isinstance(each, DocumentedArgument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([each.help_record for each in arguments])
        shared = self._options(is_shared=True)
        records = {
            parameter: record
            for parameter in self.get_params(ctx)
            # Since click 8.5 arguments have one, too; their section is above.
            if isinstance(parameter, click.Option)
            and (record := parameter.get_help_record(ctx)) is not None
        }
        with formatter.section("Options"):
            formatter.write_dl([records[each] for each in records if each not in shared])
        if shared and ctx.meta.get(NAMES_SHARED):
            names = ", ".join(each.opts[0] for each in shared)
            formatter.write_paragraph()
            formatter.write_text(f"Options of many commands, described above: {names}")
        elif shared:
            with formatter.section("Options of many commands"):
                formatter.write_dl([records[each] for each in shared])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, so that every error knows which command's help to point to."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


def _short_names(option: click.Option) -> str:
    """Return an option as a line lists it: its letter first, then its name and value."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.is_flag:
        return names
    return f"{names} {option.metavar or 'WORD'}"


def _is_less_needed(option: click.Option) -> bool:
    return option.opts[0] in _LESS_NEEDED


def _cut(line: str, width: int) -> str:
    """Return the first sentence of a line, or as many words as fit."""
    sentence, _, _ = line.partition(". ")
    if len(sentence) <= width:
        return sentence.rstrip(".")
    return f"{sentence[: width - 1].rpartition(' ')[0]}…"


def _print_short_help(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value and not context.resilient_parsing and isinstance(context.command, DocumentedCommand):
        for line in context.command.short_help_lines(context):
            click.echo(line)
        context.exit()


def command(name: str, *examples: str) -> Callable[[CommandFunction], click.Command]:
    """Return the decorator that makes a command of a function, which returns its exit status."""

    def decorate(function: CommandFunction) -> click.Command:
        made = click.command(
            name, cls=DocumentedCommand, context_settings={"help_option_names": ["--help"]}
        )(_short_help(function))
        made.examples = examples
        return made

    return decorate


_short_help = click.option(
    "-h",
    "is_short_help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_short_help,
    help="Show examples and the main options, on one screen.",
)


def argument(
    name: str,
    *,
    metavar: str,
    help_text: str,
    **attributes: Any,  # noqa: ANN401 - click's own
) -> Decorator:
    """Return the decorator that gives a command an argument; see `DocumentedArgument`."""

    def decorate(function: CommandFunction) -> CommandFunction:
        # Made again at each use: click before 8.1.4 forgets the class after the first.
        return click.argument(
            name, cls=DocumentedArgument, metavar=metavar, help_text=help_text, **attributes
        )(function)

    return decorate


def together(*decorators: Decorator) -> Decorator:
    """Return the decorator that adds arguments and options, in the order of help."""

    def decorate(function: CommandFunction) -> CommandFunction:
        for each in reversed(decorators):
            function = each(function)
        return function

    return decorate


class LocationType(click.types.StringParamType):
    """A local path or a URI."""

    def __init__(self, completion: str) -> None:
        self._completion = completion

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Leave it to the shell, which knows its files and directories."""
        return [CompletionItem(incomplete, type=self._completion)]


class TopicType(click.types.StringParamType):
    """The name of a topic of the directories that the line names."""

    def __init__(self, *, takes_list: bool = False) -> None:
        self._takes_list = takes_list

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Offer the topics that can be seen at once: no object store is asked."""
        before, comma, name = "", "", incomplete
        if self._takes_list:
            before, comma, name = incomplete.rpartition(",")
        topics: set[str] = set()
        for path in _paths_given(ctx):
            with suppress(LogStorageError, ValueError, OSError):
                topics.update(pylog.open_directory(path).topics)
        return [
            CompletionItem(f"{before}{comma}{topic}")
            for topic in sorted(topics)
            if topic.startswith(name)
        ]


def _paths_given(ctx: click.Context) -> list[str]:
    """Return the local paths among a command's arguments, as far as they have been typed."""
    given = [ctx.params.get("directory"), *(ctx.params.get("paths") or ())]
    # An option without its value, which is what is being completed, keeps click from giving the
    # arguments their names.
    given += ctx.args
    return [path for path in given if path and "://" not in path]


class CodecType(click.types.StringParamType):
    """The name of a compression codec."""

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Offer the codecs that Kafka knows."""
        labels = [codec.label for codec in pylog.CompressionType]
        return [CompletionItem(label) for label in labels if label.startswith(incomplete.lower())]


class ParsedType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no arguments there
    """What a function makes of a text; its `ValueError` says what is wrong."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self,
        value: Any,  # noqa: ANN401 - a text, or what was made of one
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - as the function
        """Return the value that the function parses from a text."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _offset_or_time(text: str) -> int | pylog.Timestamp:
    digits = text.strip()
    if digits.isascii() and digits.isdecimal() and len(digits) <= _OFFSET_DIGITS:
        return int(digits)
    return pylog.Timestamp(pylog.jobs.parse_time(text, _now_ms()))


_OFFSET_DIGITS = 19
DIRECTORY = LocationType("dir")
DURATION = ParsedType("duration", pylog.jobs.parse_duration)
FILE = LocationType("file")
NOW = ParsedType("time", lambda text: pylog.jobs.parse_cleanup_time(text, _now_ms()))
TIME = ParsedType("time", lambda text: pylog.jobs.parse_time(text, _now_ms()))
OFFSET_OR_TIME = ParsedType("offset or time", _offset_or_time)
TOPIC = TopicType()
TOPICS = TopicType(takes_list=True)


def flag(*names: str, help: str) -> Decorator:  # noqa: A002 - click's name
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help)


def number(*names: str, at_least: int = 0, metavar: str = "N", **attributes: Any) -> Decorator:  # noqa: ANN401 - click's own
    """Return an option whose value is a whole number."""
    return click.option(*names, metavar=metavar, type=click.IntRange(min=at_least), **attributes)


def instant(*names: str, **attributes: Any) -> Decorator:  # noqa: ANN401 - click's own
    """Return an option whose value is a time."""
    return click.option(*names, metavar="TIME", type=TIME, **attributes)


def file(*names: str, **attributes: Any) -> Decorator:  # noqa: ANN401 - click's own
    """Return an option whose value is a file."""
    return click.option(*names, metavar="FILE", type=FILE, **attributes)


_META = "pylog.storage_options"
_HELP = (
    "A parameter of the store that PATH lies in, such as region=eu-central-1; may be given several "
    "times. Credentials are better in the environment, since other users of this machine see "
    "command lines."
)


mask = file(
    "--mask",
    help="Replace parts of the records by the rules in this file: JSON paths, headers, keys or "
    "values, see pylog mask --help.",
)
"""Gives a command's function the argument ``mask``, a path."""


def stored_paths(
    *,
    help_text: str,
    type: click.ParamType,  # type: ignore[type-arg]  # noqa: A002 - click's name
    required: bool = True,
) -> Decorator:
    """Give a command the argument ``paths``, and ``--storage-option``."""
    takes_paths = argument(
        "paths",
        metavar="PATH",
        nargs=-1,
        required=required,
        type=type,
        help_text=help_text,
        callback=_located,
    )
    takes_parameters = click.option(
        "--storage-option",
        metavar="KEY=VALUE",
        multiple=True,
        is_eager=True,  # so that it is known when paths are looked at
        expose_value=False,
        callback=_parsed,
        help=_HELP,
    )
    return together(takes_paths, takes_parameters)


def _pairs(
    context: click.Context, option: str, texts: tuple[str, ...], malformed: Callable[[str], str]
) -> dict[str, str]:
    """Return values by key; ``malformed`` makes the error for a text that is no such pair."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise click.UsageError(malformed(text), context)
        if name in pairs:
            raise click.UsageError(f"{option} names {name} twice", context)
        pairs[name] = value
    return pairs


def _parsed(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> None:
    """Keep the parameters for `_located`. No message repeats a text, which may be a secret."""
    malformed = "a --storage-option is not of the form KEY=VALUE"
    context.meta[_META] = _pairs(context, "--storage-option", texts, lambda _: malformed)


def _located(
    context: click.Context, parameter: click.Parameter, paths: tuple[str, ...]
) -> tuple[str, ...]:
    parameters = context.meta.get(_META)
    if not parameters:
        return paths
    return tuple(pylog.location(path, storage_options=parameters) for path in paths)


LINE_FORMATS = ("jsonl", "text")
"""How records are printed, and read back."""

_SIGNS_OF_A_PATTERN = frozenset("*?[]^$|()+\\")

paths = stored_paths(
    type=DIRECTORY,
    help_text="Log directories (entries of a broker's log.dirs) or <topic>-<partition> "
    "directories.",
)


def _node_ids(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> list[int] | None:
    if text is None:
        return None
    parts = [each.strip() for each in text.split(",")]
    if not all(each.isascii() and each.isdecimal() for each in parts):
        msg = f"{text!r} is no list of node ids, such as 1 or 1,2"
        raise click.BadParameter(msg, context, parameter)
    return [int(each) for each in parts]


def node_ids(*names: str, help: str) -> Decorator:  # noqa: A002 - click's name
    """Return an option whose value is ids of nodes."""
    return click.option(*names, metavar="IDS", callback=_node_ids, help=help)


def _endpoints(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> dict[int, str]:
    found: dict[int, str] = {}
    for each in text.split(",") if text else ():
        node, _, endpoint = each.strip().partition("=")
        if not (node.isascii() and node.isdecimal()) or ":" not in endpoint:
            msg = f"{each!r} is not of the form ID=HOST:PORT"
            raise click.BadParameter(msg, context, parameter)
        found[int(node)] = endpoint
    return found


def endpoints(help: str) -> Decorator:  # noqa: A002 - click's name
    """Return the option for addresses of controllers, by node id."""
    return click.option("--endpoints", metavar="ID=HOST:PORT,…", callback=_endpoints, help=help)


def passed_on(table: Mapping[str, pylog.jobs.CleanupOption]) -> Decorator:
    """Return the options of a table that the library's function gets as they are."""
    return together(*(_passed_on(each) for each in table.values() if each.parameter is not None))


def _passed_on(option: pylog.jobs.CleanupOption) -> Decorator:
    names = (f"--{option.name}", option.parameter or "")
    if option.choices:
        choice = click.Choice(option.choices)
        return click.option(*names, type=choice, default=option.choices[0], help=option.help)
    if option.metavar is None:
        return flag(*names, help=option.help)
    attributes: dict[str, Any] = {"metavar": option.metavar, "multiple": option.is_repeated}
    if option.is_number:
        return number(*names, **attributes, help=option.help)
    return click.option(*names, **attributes, help=option.help)


def new_directory(table: Mapping[str, pylog.jobs.CleanupOption]) -> Decorator:
    """Return the option ``--to`` of a table, for the log directory that a command makes."""
    return click.option("--to", metavar="DIR", type=DIRECTORY, required=True, help=table["to"].help)


writable_directory = argument(
    "directory",
    metavar="DIR",
    type=DIRECTORY,
    help_text="A log directory (entry of a broker's log.dirs), local and not open in a broker.",
)


def one_topic(*, required: bool = True) -> Decorator:
    """Return the option for the name of a topic."""
    return click.option(
        "--topic", "-t", metavar="T", type=TOPIC, required=required, help="The topic's name."
    )


topic = one_topic()


def topics(help_text: str) -> Decorator:
    """Return the option for the names of the only topics that count; see `names_in`."""
    return click.option(
        "--topic", "-t", "topics", metavar="T[,T...]", multiple=True, type=TOPICS, help=help_text
    )


def partitions(
    help_text: str = "Only this partition of each topic; may be given several times.",
) -> Decorator:
    """Return the option for the only partitions of each topic that count."""
    return number("--partition", "-p", "partitions", multiple=True, help=help_text)


of_several_disks = together(
    flag(
        "--include-stray",
        help="Read directories that end in -stray, -delete or -future, too. Beside a live "
        "directory of the partition, one is topic <topic>.<id>-stray. One that is a PATH by itself "
        "is read anyway.",
    ),
    click.option(
        "--replica",
        metavar="NODE",
        help="Where several nodes' directories hold a partition, read the replica of this node "
        "(its id, or its log directory). Default: the replica with the highest leader epoch, of "
        "these the longest.",
    ),
)
"""Which directory of a partition is read."""

own_timestamps = together(
    instant(
        "--min-timestamp",
        help="Only records whose own timestamp is TIME or later. This is a filter, and exact, "
        "where --start-timestamp looks up an offset.",
    ),
    instant(
        "--max-timestamp",
        help="Only records whose own timestamp is TIME or earlier; records without one never "
        "match.",
    ),
)


def pattern(which: str) -> Decorator:
    """Return the option for a regular expression in place of names; see `names_in`."""
    return click.option(
        "--pattern",
        metavar="REGEX",
        help=f"Only topics in whose name this regular expression is found{which}",
    )


pattern_of_any = pattern(
    "; ^ and $ stand for the name's start and end. Internal topics are matched, too."
)


def isolation(help_text: str) -> Decorator:
    """Return the option for the isolation level."""
    return click.option(
        "--isolation",
        type=click.Choice(
            [level.name.lower() for level in pylog.IsolationLevel], case_sensitive=False
        ),
        default="read_uncommitted",
        help=help_text,
    )


class UpperCaseChoice(click.Choice[str]):
    """A choice of words in upper case, which may be given in any."""

    def __init__(self, choices: Sequence[str]) -> None:
        super().__init__(choices, case_sensitive=False)

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        """Return what is compared, and what help and messages show."""
        return str(choice).upper()


def mode(help_text: str, *, modes: Sequence[str] = ("FAILFAST", "DROPMALFORMED")) -> Decorator:
    """Return the option for what damage is: an error, or left out."""
    return click.option(
        "--mode",
        type=UpperCaseChoice(modes),
        default="FAILFAST",
        help=help_text,
    )


def max_decompressed_bytes(more: str = "") -> Decorator:
    """Return the option for the limit on what a batch may be decompressed to."""
    return number(
        "--max-decompressed-bytes",
        at_least=1,
        metavar="BYTES",
        default=pylog.DEFAULT_MAX_DECOMPRESSED_BYTES,
        help="The most bytes that the records of one batch may have after decompression; a batch "
        f"with more counts as damage.{more}",
    )


def html(what: str) -> Decorator:
    """Return the option for a page; see `pylog.cli.table.write_page`."""
    return file(
        "--html",
        help=f"{what}. It needs nothing beside it, neither files nor a network. An existing file "
        "is replaced.",
    )


def trust_batch_timestamps(when: str) -> Decorator:
    """Return the option by which batches are passed over by their headers."""
    return flag(
        "--trust-batch-timestamps",
        help=f"{when}, do not read batches whose header says that all records are earlier. "
        "Faster, and right for what brokers have written; records of a batch whose header is wrong "
        "are missed.",
    )


def threads(what: str, default: str = "one for each processor") -> Decorator:
    """Return the option for how many threads work; ``what`` is what there are so many of then."""
    return number(
        "--threads",
        at_least=1,
        help=f"How many {what}. Default: what the environment variable PYLOG_NUM_THREADS says, "
        f"else {default}. The output does not depend on it.",
    )


def now(what: str) -> Decorator:
    """Return the option for the time that ``what`` is counted to."""
    text = pylog.jobs.cleanup_options(counted=what)["now"].help
    return click.option("--now", "now_ms", metavar="TIME", type=NOW, help=text)


def names_in(topics: tuple[str, ...], pattern: str | None) -> list[str]:
    """Return the names that were given, unless a pattern was, too."""
    if topics and pattern is not None:
        raise click.UsageError("give either --topic or --pattern, not both")
    names = []
    for text in topics:
        given = [name for name in text.split(",") if name]
        if not given:
            msg = f"--topic {text!r} names no topic; without --topic, all topics are meant"
            raise click.UsageError(msg)
        names += given
    for name in names:
        if _SIGNS_OF_A_PATTERN.intersection(name):
            raise click.UsageError(f"{name!r} is not a topic name{_hint_at_patterns()}")
    return names


def _hint_at_patterns() -> str:
    """Return what to do instead of giving a pattern as a name."""
    context = click.get_current_context(silent=True)
    if context is not None and "pattern" in context.params:
        return "; --pattern takes a regular expression"
    return ": give whole names, with commas between them"


def one_partition(*, required: bool = True) -> Decorator:
    """Return the option for the number of a partition."""
    return number("--partition", "-p", required=required, help="The partition's number.")


partition = one_partition()


def _color(context: click.Context, parameter: click.Parameter, when: str) -> None:
    """Keep it where `pylog.cli.style` finds it, as click's own functions do."""
    if when != "auto":
        context.color = when == "always"


color = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    is_eager=True,
    expose_value=False,
    callback=_color,
    help="Whether the output is coloured. auto: in a terminal, unless NO_COLOR is set, and "
    "elsewhere if FORCE_COLOR is.",
)


def json_output(help_text: str) -> Decorator:
    """Return the option ``--json``."""
    return flag("--json", "as_json", help=help_text)


as_json = json_output("Print the summary as one JSON document, sizes in bytes.")
as_json_document = json_output("Print one JSON document.")


_CLEANUP = pylog.jobs.cleanup_options()


def _properties(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Return the values of ``--config``, by property."""
    pairs = _pairs(
        context, "--config", texts, lambda text: f"--config {text!r} is not of the form key=value"
    )
    return {name: value.strip() for name, value in pairs.items()}


config = click.option(
    "--config",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_properties,
    help=_CLEANUP["config"].help,
)


def _server_properties(
    context: click.Context, parameter: click.Parameter, path: str | None
) -> pylog.ServerProperties | None:
    return None if path is None else pylog.ServerProperties.read(path)


def server_properties_for(purpose: str) -> Decorator:
    """Return the option for a broker's configuration; ``purpose``: what it is read for."""
    return file(
        "--server-properties",
        callback=_server_properties,
        help=f"A broker's server.properties, {purpose}",
    )


server_properties = file(
    "--server-properties", callback=_server_properties, help=_CLEANUP["server-properties"].help
)

dry_run = flag("--dry-run", help=_CLEANUP["dry-run"].help)

yes = flag("--yes", help="Do not ask in a terminal before all records of a topic are removed.")

registry_topic = click.option(
    "--registry-topic",
    default="_schemas",
    show_default=True,
    metavar="NAME",
    help="The registry's topic.",
)

high_watermark = click.option(
    "--high-watermark",
    type=click.Choice(_CLEANUP["high-watermark"].choices),
    default=_CLEANUP["high-watermark"].choices[0],
    help=_CLEANUP["high-watermark"].help,
)

recover_as_broker = flag(
    "--recover-as-broker",
    help=_CLEANUP["recover-as-broker"].help,
)


def cleanup(*, all_topics: str, counted: str, once: str) -> Decorator:
    """Return the argument and the options of a command that removes what topics no longer keep."""
    texts = pylog.jobs.cleanup_options(topics=all_topics, counted=counted, once=once)
    return together(
        writable_directory,
        topics(texts["topic"].help),
        server_properties,
        config,
        now(counted),
        high_watermark,
        recover_as_broker,
        flag("--once", help=texts["once"].help),
        dry_run,
        as_json,
    )
