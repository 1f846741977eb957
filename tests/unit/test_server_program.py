"""A server program of the tests: what it says is kept, and it can be stopped while it says more."""

from __future__ import annotations

import os
import sys
import time

from tests.support.server_program import ServerProgram

TALKS = """
print("port 1234", flush=True)
number = 0
while True:
    print("line", number, flush=True)
    number += 1
"""


def talking() -> ServerProgram:
    return ServerProgram("the talker", [sys.executable, "-c", TALKS], os.environ, r"port (\d+)")


def test_it_can_be_stopped_while_it_talks() -> None:
    """What goes wrong in the thread that reads fails a test: here it would be this one."""
    for _ in range(10):
        with talking() as program:
            while not program.lines:
                time.sleep(0.001)
        assert program.port == 1234
        assert program.lines[0] == "line 0\n"
