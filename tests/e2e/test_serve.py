"""``pylog serve`` as a program: its first line, its end, and what it leaves in a directory."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_says_where_it_listens_and_ends_in_order(
    golden_root: GoldenRoot, sent: signal.Signals, status: int
) -> None:
    # The files are read-only, and that none of them changes is held after every test.
    case = golden_root.case("4.3.0/txn")
    command = [sys.executable, "-m", "pylog", "serve", str(case), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        first = json.loads(running.stdout.readline())
        assert (first["topics"], first["partitions"]) == (1, 2)
        assert first["clusterId"].startswith("pylog-serve-")
        with RawClient(first["address"]) as client:
            (topic,) = client.ask("Metadata", 13, {"topics": None})["topics"]
            assert topic["name"] == "payments"
            running.send_signal(sent)
            assert running.wait(20) == status
        assert running.stderr.read() == b""


def test_its_last_line_says_what_it_has_served(golden_root: GoldenRoot) -> None:
    command = [sys.executable, "-m", "pylog", "serve", str(golden_root.case("4.3.0/txn"))]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        first = running.stdout.readline().decode()
        with RawClient(first.split()[-1]) as client:
            client.ask("Metadata", 13, {"topics": None})
        running.send_signal(signal.SIGINT)
        *_, last = running.stdout.read().decode().splitlines()
    assert re.fullmatch(r"Served [1-9]\d* requests? of 1 connection with \d+B in \ds", last), last


def test_wrong_usage_is_one_line(golden_root: GoldenRoot) -> None:
    case = str(golden_root.case("4.3.0/txn"))
    for arguments, text in (
        (["--tls-key", "x"], b"--tls-key and --tls-client-ca need --tls-certificate"),
        (["--host", "0.0.0.0"], b"--allow-remote"),  # noqa: S104 - refused
        (["--advertised-listener", "here"], b"expected host:port"),
    ):
        command = [sys.executable, "-m", "pylog", "serve", case, *arguments]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        assert done.returncode == 2
        assert text in done.stderr
        assert done.stderr.count(b"\n") == 1
