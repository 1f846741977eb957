"""`pylog compact` where the file system itself has no room, or lets files grow no further."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from tests.unit.cleaner.cleaning_jobs import contents
from tests.unit.writing.test_compaction import rows

if TYPE_CHECKING:
    from pathlib import Path

COMPACT = (sys.executable, "-m", "pylog", "compact")
RECORDS = 60_000
SEGMENT_BYTES = 500_000
SPARE_BYTES = 150_000
"""Less than what stays of a segment."""

CANNOT_MOUNT = 99
IN_A_SMALL_FILE_SYSTEM = f"""\
size=$1 place=$2 before=$3 after=$4
shift 4
mount -t tmpfs -o size="$size" tmpfs "$place" || exit {CANNOT_MOUNT}
cp -a "$before"/. "$place" || exit {CANNOT_MOUNT}
"$@" "$place"
status=$?
cp -a "$place"/. "$after"
exit $status
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Make a log of several segments, of each of which half of the records go."""
    logs = tmp_path / "logs"
    properties = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)}
    pylog.create_topic(logs, "foo", 1, properties=properties)
    keys = [b"%d" % number if number % 2 else b"again" for number in range(RECORDS)]
    pylog.write_topic(logs, "foo", pa.table({"key": keys, "value": keys}))
    return logs


def of_log(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: each for name, each in found.items() if name.startswith("foo-0/")}


def ensure_refused(done: subprocess.CompletedProcess[str], reason: str) -> None:
    [line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("pylog: error: ")
    assert line.endswith(reason)


def ensure_it_can_be_cleaned(logs: Path) -> None:
    subprocess.run([*COMPACT, str(logs)], check=True, capture_output=True)
    assert RECORDS / 2 < len(rows(logs)) < RECORDS * 3 / 4


def test_a_full_file_system_leaves_the_log_as_it_was(logs: Path, tmp_path: Path) -> None:
    before = contents(logs)
    place, after = tmp_path / "small", tmp_path / "after"
    place.mkdir()
    after.mkdir()
    size = sum(map(len, before.values())) + SPARE_BYTES
    command = [*("unshare", "--map-root-user", "--mount", "sh", "-c", IN_A_SMALL_FILE_SYSTEM, "sh")]
    command += [str(size), str(place), str(logs), str(after), *COMPACT]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if done.returncode == CANNOT_MOUNT or done.stderr.startswith("unshare:"):
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    ensure_refused(done, "No space left on device")
    assert of_log(contents(after)) == of_log(before)
    ensure_it_can_be_cleaned(after)


def test_a_file_that_may_grow_no_further_leaves_the_log_as_it_was(logs: Path) -> None:
    before = contents(logs)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SPARE_BYTES, SPARE_BYTES))

    done = subprocess.run(
        [*COMPACT, str(logs)], check=False, capture_output=True, text=True, preexec_fn=limit
    )
    ensure_refused(done, "File too large")
    assert of_log(contents(logs)) == of_log(before)
    ensure_it_can_be_cleaned(logs)
