"""A program of its own that is measured: it answers each line with a line."""

import subprocess
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Self

_EXIT_SECONDS = 30


class PeerDiedError(RuntimeError):
    """A peer's process has ended before it answered."""


class PeerProcess:
    """A process that stays alive between questions; a context manager ends it.

    Parameters
    ----------
    name
        What errors call it.
    command
        The program and its arguments.
    environment
        Its environment variables; by default those of this process.
    is_quiet
        Whether what it writes to stderr is dropped.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        is_quiet: bool = False,
    ) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if is_quiet else None,
            env=environment,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate(timeout=_EXIT_SECONDS)

    def ask(self, line: str) -> str:
        """Return the line that the process answers ``line`` with.

        Raises
        ------
        PeerDiedError
            It has ended; what it had to say about that is on its stderr.
        """
        questions, answers = self._pipes()
        try:
            questions.write(f"{line}\n")
            questions.flush()
            answer = answers.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            msg = f"{self.name} ended without an answer to {line!r}"
            raise PeerDiedError(msg)
        return answer

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._process.stdin is None or self._process.stdout is None:
            msg = f"{self.name} has no pipes"
            raise PeerDiedError(msg)
        return self._process.stdin, self._process.stdout
