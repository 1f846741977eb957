from __future__ import annotations

import sys

import pytest

from tests.support.peer_process import PeerDiedError, PeerProcess

_ECHO = (
    "import os, sys\nfor line in sys.stdin: print(os.environ['PREFIX'] + line, end='', flush=True)"
)


def test_each_line_is_answered_with_a_line() -> None:
    command = [sys.executable, "-c", _ECHO]
    with PeerProcess("echo", command, environment={"PREFIX": "said: "}) as peer:
        assert peer.ask("one") == "said: one\n"
        assert peer.ask("two") == "said: two\n"


@pytest.mark.parametrize("program", ["", "import sys; sys.stdin.readline()"])
def test_a_process_that_ends_without_an_answer_is_an_error(program: str) -> None:
    with PeerProcess("mute", [sys.executable, "-c", program]) as peer:
        for _ in range(2):
            with pytest.raises(PeerDiedError, match="mute ended without an answer to 'hello'"):
                peer.ask("hello")


def test_a_process_ends_with_the_block_that_it_is_used_in() -> None:
    with PeerProcess("patient", [sys.executable, "-c", "import time; time.sleep(600)"]) as peer:
        process = peer._process
        assert process.poll() is None
    assert process.poll() is not None
