"""``pylog serve`` of a file system that is mounted read-only, where nothing could be written."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, get_args

import pytest

from tests.interop.test_served_records import what_differs
from tests.support.golden import Isolation
from tests.support.served_clients import READERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.golden import GoldenRoot

pytestmark = pytest.mark.e2e

CANNOT_MOUNT, CAN_WRITE = 97, 98
# In a user and a mount namespace of its own: no root is needed, and the mount ends with the server.
FROM_A_READ_ONLY_MOUNT = f"""
case=$1 place=$2
shift 2
mount -t tmpfs -o size=16m tmpfs "$place" || exit {CANNOT_MOUNT}
cp -R "$case/." "$place" && mount -o remount,ro "$place" || exit {CANNOT_MOUNT}
touch "$place/new" 2> /dev/null && exit {CAN_WRITE}
exec "$@" "$place"
"""


@contextmanager
def served_read_only(case: Path, place: Path, *options: str) -> Iterator[str]:
    """Serve a copy of a case from a read-only mount; skip where nothing can be mounted."""
    command = [*("unshare", "--map-root-user", "--mount", "sh", "-c", FROM_A_READ_ONLY_MOUNT, "sh")]
    command += [str(case), str(place), sys.executable, "-m", "pylog", "serve", "--port", "0"]
    command += ["--json", *options]
    try:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        pytest.skip("no unshare here to mount a file system with")
    with running:
        assert running.stdout is not None
        assert running.stderr is not None
        line = running.stdout.readline()
        if not line:
            said = running.stderr.read().decode()
            if running.wait() == CAN_WRITE:
                pytest.fail("the mount is not read-only")
            if running.returncode == CANNOT_MOUNT or said.startswith("unshare:"):
                pytest.skip(f"nothing can be mounted here: {said.strip()}")
            pytest.fail(said)
        try:
            yield json.loads(line)["address"]
        finally:
            running.terminate()
        assert running.wait(20) == 0
        assert running.stderr.read() == b""


@pytest.mark.thorough
@pytest.mark.parametrize("options", [(), ("--follow",)])
def test_clients_read_it_whole(
    golden_root: GoldenRoot, tmp_path: Path, options: tuple[str, ...]
) -> None:
    place = tmp_path / "mount"
    place.mkdir()
    partition = golden_root.partition("4.3.0/txn:payments-0")
    with served_read_only(partition.log_directory, place, *options) as address:
        for client, read in READERS.items():
            for isolation in get_args(Isolation):
                assert what_differs(read, address, partition, isolation) == [], client
