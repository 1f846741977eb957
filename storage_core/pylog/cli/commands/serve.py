"""``pylog serve``: a log directory for Kafka clients, without a broker."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import read_masking, tell
from pylog.cli.progress import is_seen
from pylog.text.words import counted, duration_text, format_bytes

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from pylog.results import BrokerServer

_STATUS_SECONDS = 1.0
_END_SECONDS = 4.0
_TURN_SECONDS = 0.0005
_ERASED = "\r\x1b[K"


@command(
    "serve",
    "pylog serve /mnt/snapshot/kafka-logs",
    "pylog serve /mnt/snapshot/kafka-logs --topic orders --port 9092",
    "pylog serve /mnt/kafka-logs --follow --json --port 0",
    "pylog serve /mnt/snapshot/kafka-logs --mask rules.toml",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all but internal ones.")
@options.pattern(".")
@click.option("--host", default="127.0.0.1", help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    help="The port to listen on; 0 takes a free one.",
)
@options.flag(
    "--allow-remote",
    help="Let --host be an address that other machines reach. There are no ACLs: everyone who can "
    "connect, and has the password or certificate that you ask for, can read everything.",
)
@click.option(
    "--advertised-listener",
    metavar="HOST:PORT",
    help="Where clients are told to connect to, if that is not the address listened on, as in a "
    "container.",
)
@options.file("--tls-certificate", help="PEM file: encrypt connections.")
@options.file("--tls-key", help="PEM file: the certificate's private key.")
@options.file(
    "--tls-client-ca", help="PEM file: accept only clients with a certificate of these authorities."
)
@options.file(
    "--sasl-users",
    help="Ask clients for a password (SASL/PLAIN, SCRAM-SHA-256 or -512); the file has a line "
    "user:password for each.",
)
@options.mode("What a client gets where a batch is damaged: an error, or the next intact batch.")
@options.of_several_disks
@click.option(
    "--high-watermark",
    type=click.Choice(["log-end", "checkpoint"]),
    default="log-end",
    help="How far consumers read: the end of the log, or what replication-offset-checkpoint says.",
)
@options.flag("--follow", help="Serve what a broker appends meanwhile, too.")
@options.flag(
    "--check-each-time",
    help="Check every batch each time it is sent, not only after its file has changed: for a disk "
    "that returns other bytes than were written.",
)
@options.mask
@options.server_properties
@click.option(
    "--offsets",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep what consumer groups commit in this file, outside the PATHs, so that they resume "
    "there after a restart. Default: in memory.",
)
@options.instant(
    "--at",
    "at_ms",
    help="Let groups resume from what they had committed by TIME, as in `pylog groups --at`. "
    "Default: from their last commits in the PATHs.",
)
@options.number(
    "--group-initial-rebalance-delay",
    "group_initial_rebalance_delay_ms",
    metavar="MS",
    default=100,
    help="How many milliseconds the first member of a group waits for others.",
)
@options.number(
    "--max-connections", at_least=1, default=2000, help="Maximum number of connections."
)
@click.option(
    "--metrics-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve /metrics to Prometheus on this port of --host; 0 takes a free one.",
)
@options.json_output(
    'Print JSON lines; the first one is {"address": "host:port", ...}, the others are warnings.'
)
def serve(
    paths: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    pattern: str | None,
    tls_certificate: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    sasl_users: str | None,
    mask: str | None,
    as_json: bool,
    **arguments: Any,  # noqa: ANN401 - further ones of `pylog.serve`
) -> int:
    """Serve log directories to Kafka clients, read-only, without a broker.

    Any Kafka client connects to this address as to a broker: consumers, Kafka's tools, kcat,
    MirrorMaker 2. It reads the partitions as they are on the disk. Requests that produce records or
    change a cluster are refused; nothing in the directories is changed. The cluster id that clients
    see is pylog-serve- and the directory's cluster id.

    Every batch is checked before it is sent for the first time. At a damaged batch a client gets
    the error CORRUPT_MESSAGE, and the file and byte are printed here.

    With --mask clients get records as the rules have them, with the same offsets: batches that
    change are rebuilt. This is slower, and not possible with --follow.

    Consumer groups resume from their last commits in the directory's __consumer_offsets, or from
    the commits by --at. New commits are kept in memory, or with --offsets in a file.

    If several directories hold a partition, the replica with the highest leader epoch is served, or
    the longest one if epochs are equal. Diverged replicas are refused: choose one with --replica.

    It runs until Ctrl-C or SIGTERM, and then prints a line of totals.

    Exit status: 0 ended by SIGTERM, 130 ended with Ctrl-C, 2 wrong usage, a path or address that
    cannot be used, or an error that ended the server.
    """
    names = options.names_in(topics, pattern)
    stop = threading.Event()
    with _ended_by_sigterm(stop), _short_turns():
        server = pylog.serve(
            *paths,
            topics=names or None,
            pattern=pattern,
            tls=_tls(tls_certificate, tls_key, tls_client_ca),
            users=None if sasl_users is None else pylog.jobs.read_users(sasl_users),
            masking=read_masking(mask),
            **arguments,
        )
        with _ended_in_time(stop), server, _logged_as_json(as_json=as_json):
            _print_start(server, arguments, as_json=as_json, is_open=sasl_users is None)
            has_status = is_seen() and not as_json
            with _totals(server, has_status=has_status, as_json=as_json):
                while server.is_running and not stop.wait(_STATUS_SECONDS):
                    if has_status:
                        _print_status(server)
    return exit_status.SOUND


def _tls(certificate: str | None, key: str | None, client_ca: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        if key is not None or client_ca is not None:
            raise click.UsageError("--tls-key and --tls-client-ca need --tls-certificate")
        return None
    context: ssl.SSLContext = pylog.jobs.tls_context(certificate, key, client_ca)
    return context


@contextmanager
def _ended_by_sigterm(stop: threading.Event) -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _short_turns() -> Iterator[None]:
    """Let threads take turns more often: one that answers a large request keeps others waiting."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _ended_in_time(stop: threading.Event) -> Iterator[None]:
    """End the program some seconds after it was told to, whatever threads still read.

    Nothing is lost: a commit is answered when it is on the disk.
    """
    is_over = threading.Event()

    def watch() -> None:
        stop.wait()
        if not is_over.wait(_END_SECONDS):
            os._exit(exit_status.SOUND)

    threading.Thread(target=watch, name="pylog-serve-end", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
        stop.set()


class _JsonLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _print_json({"level": record.levelname.lower(), "message": record.getMessage()})


@contextmanager
def _logged_as_json(*, as_json: bool) -> Iterator[None]:
    logger, lines = logging.getLogger("pylog"), _JsonLines(logging.WARNING)
    if as_json:
        logger.addHandler(lines)
    try:
        yield
    finally:
        logger.removeHandler(lines)


class _StatusEraser(logging.Handler):
    """Removes the status line before the next handler prints a line in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(_ERASED)


@contextmanager
def _totals(server: BrokerServer, *, has_status: bool, as_json: bool) -> Iterator[None]:
    """Keep the status line apart from log lines, and print what was done in the end."""
    logger, eraser, start = logging.getLogger("pylog"), _StatusEraser(), time.monotonic()
    if has_status:
        logger.handlers.insert(0, eraser)
    try:
        yield
    finally:
        if has_status:
            logger.removeHandler(eraser)
            sys.stderr.write(_ERASED)
            sys.stderr.flush()
        if not as_json:
            done = server.metrics
            sys.stdout.write(
                f"Served {counted(done.requests, 'request')} of "
                f"{counted(done.accepted, 'connection')} with {format_bytes(done.sent_bytes)} in "
                f"{duration_text(round(1000 * (time.monotonic() - start)))}\n"
            )
            sys.stdout.flush()


def _print_json(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def _print_start(
    server: BrokerServer, arguments: dict[str, Any], *, as_json: bool, is_open: bool
) -> None:
    if arguments["allow_remote"] and is_open and not as_json:
        tell("warning", "everyone who reaches this address can read all served topics")
    if as_json:
        _print_json(
            {
                "address": server.address,
                "clusterId": server.cluster_id,
                "topics": server.topic_count,
                "partitions": server.partition_count,
                "metricsAddress": server.metrics_address,
            }
        )
        return
    sys.stdout.write(
        f"Serving {counted(server.topic_count, 'topic')} "
        f"({counted(server.partition_count, 'partition')}) at {server.address}\n"
        f"Cluster id: {server.cluster_id}\n"
    )
    if server.metrics_address is not None:
        sys.stdout.write(f"Metrics: http://{server.metrics_address}/metrics\n")
    sys.stdout.write("Stop with Ctrl-C.\n")
    sys.stdout.flush()


class _Status:
    """What the status line was computed from last."""

    sent_bytes = 0


def _print_status(server: BrokerServer) -> None:
    metrics = server.metrics
    sent = metrics.sent_bytes
    rate = (sent - _Status.sent_bytes) / _STATUS_SECONDS
    _Status.sent_bytes = sent
    sys.stderr.write(
        f"{_ERASED}{counted(metrics.connections, 'connection')}, "
        f"{counted(metrics.groups, 'group')}, "
        f"{format_bytes(int(rate))}/s, {format_bytes(sent)} sent"
    )
    sys.stderr.flush()
