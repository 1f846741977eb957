"""Clients in other languages, each started once."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.support.foreign_clients import (
    ForeignClientNotFoundError,
    ForeignReader,
    reader_command,
)
from tests.support.kafka_broker_jars import KafkaNotFoundError, give_up_without_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator


class ForeignReaders(Protocol):
    """The fixture `foreign_readers`."""

    def __call__(self, client: str) -> ForeignReader:
        """Return the reader; skip the test where the client cannot be run."""


@pytest.fixture(scope="session")
def foreign_readers() -> Iterator[ForeignReaders]:
    """Give a function that returns the reader of a client, started at its first use."""
    found: dict[str, ForeignReader | Exception] = {}
    with ExitStack() as stack:

        def reader(client: str) -> ForeignReader:
            if client not in found:
                try:
                    found[client] = stack.enter_context(ForeignReader(reader_command(client)))
                except (ForeignClientNotFoundError, KafkaNotFoundError) as error:
                    found[client] = error
            outcome = found[client]
            if isinstance(outcome, KafkaNotFoundError):
                give_up_without_kafka(f"no {client}", outcome)
            if isinstance(outcome, Exception):
                pytest.skip(f"{client}: {outcome}")
            return outcome

        yield reader
