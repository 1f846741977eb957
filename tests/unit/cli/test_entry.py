"""The entry point, before the program is loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SLOW_CLICK = """
import time
print("loading", flush=True)
time.sleep(60)
"""


@pytest.fixture
def slow_start(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the program does not come to an end of loading."""
    (tmp_path / "click.py").write_text(SLOW_CLICK, "utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def test_ctrl_c_while_it_loads_leaves_no_traceback(slow_start: dict[str, str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pylog", "--help"],
        env=slow_start,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Else deaf in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT  # which a shell reports as 130
    assert error == b""


def test_a_signal_that_is_ignored_stays_so(slow_start: dict[str, str], tmp_path: Path) -> None:
    program = "import signal\nprint(signal.getsignal(2), flush=True)\nraise SystemExit"
    (tmp_path / "click.py").write_text(program, "utf-8")
    done = subprocess.run(
        ["/bin/sh", "-c", 'trap "" INT; exec "$0" -m pylog', sys.executable],
        env=slow_start,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.strip() == str(signal.SIG_IGN).encode()
