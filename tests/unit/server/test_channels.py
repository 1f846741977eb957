"""What goes through a connection: pieces of memory and of files, requests in parts, silence."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from random import Random
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogStorageError
from pylog.files.byte_source import LocalFile
from pylog.internal_topics.message_writer import FileRange
from pylog.server.channels import ConnectionClosedError, PlainChannel, SilenceLimits
from pylog.server.request_limits import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = 5
LIMITS = SilenceLimits(idle_seconds=0.2, stalled_seconds=0.2)
SIZES = (1, 4095, 4096, 4097, 100_000, 2_000_000)
LONG = 20.0


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the server's end of a connection, and the client's."""
    one, other = socket.socketpair()
    one.setblocking(False)  # noqa: FBT003 - the standard library's
    other.settimeout(LONG)
    with one, other:
        yield one, other


def received(client: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        data += client.recv(size - len(data))
    return bytes(data)


@pytest.mark.parametrize("has_end", [True, False])
def test_pieces_of_memory_and_of_files_come_in_their_order(
    tmp_path: Path, ends: tuple[socket.socket, socket.socket], *, has_end: bool
) -> None:
    random = Random(SEED)
    content = random.randbytes(3_000_000)
    (tmp_path / "file").write_bytes(content)
    pieces: list[bytearray | FileRange] = []
    expected = b""
    with LocalFile(str(tmp_path / "file")) as file:
        for number, size in enumerate(SIZES):
            head = random.randbytes(random.choice((1, 40, 90_000)))
            start = number * 1_000
            pieces += [bytearray(head), FileRange(file, start, size)]
            expected += head + content[start : start + size]
        if has_end:
            pieces.append(bytearray(b"end"))
            expected += b"end"

        async def send() -> None:
            await PlainChannel(ends[0], SilenceLimits(LONG, LONG), Turns(1)).send(pieces)

        sender = threading.Thread(target=asyncio.run, args=(send(),))
        sender.start()
        assert received(ends[1], len(expected)) == expected
        sender.join()


def test_a_file_that_ends_early_is_an_error_before_all_has_been_sent(
    tmp_path: Path, ends: tuple[socket.socket, socket.socket]
) -> None:
    (tmp_path / "file").write_bytes(bytes(10_000))

    async def send(file: LocalFile, size: int) -> None:
        await PlainChannel(ends[0], LIMITS, Turns(1)).send(
            [bytearray(b"head"), FileRange(file, 0, size)]
        )

    with LocalFile(str(tmp_path / "file")) as file:
        for size in (10_001, 14_095, 14_097, 1_000_000):
            with pytest.raises(
                LogStorageError, match=r"the file ends at byte 10000, where \d+ more"
            ):
                asyncio.run(send(file, size))


def test_a_request_in_parts_is_read_as_a_whole(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    async def read() -> list[bytes]:
        channel = PlainChannel(ends[0], LIMITS, Turns(1))
        parts = [b"a", b"bc", b"defg" * 50_000, b"h"]

        async def send() -> None:
            for part in parts:
                await asyncio.get_running_loop().sock_sendall(client, part)
                await asyncio.sleep(0.02)

        client = ends[1]
        client.setblocking(False)  # noqa: FBT003 - the standard library's
        sending = asyncio.create_task(send())
        found = [await channel.read_exactly(each, LONG) for each in (2, 200_000, 2)]
        await sending
        return found

    whole = b"abc" + b"defg" * 50_000 + b"h"
    assert asyncio.run(read()) == [whole[:2], whole[2:200_002], whole[200_002:]]


def test_who_says_nothing_and_who_has_gone_are_told_apart(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    async def read() -> None:
        channel = PlainChannel(ends[0], LIMITS, Turns(1))
        ends[1].sendall(b"half")
        with pytest.raises(TimeoutError):
            await channel.read_exactly(5, 0.05)
        assert not channel.is_gone()
        ends[1].close()
        with pytest.raises(ConnectionClosedError):
            await channel.read_exactly(5, LONG)
        assert await channel.read_exactly(4, LONG) == b"half"
        assert channel.is_gone()
        channel.close()

    asyncio.run(read())


def test_what_nobody_has_asked_for_yet_stays_in_the_systems_buffers(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    async def read() -> int:
        channel = PlainChannel(ends[0], LIMITS, Turns(1))
        client = ends[1]
        client.setblocking(False)  # noqa: FBT003 - the standard library's
        client.sendall(b"1234")
        assert await channel.read_exactly(4, LONG) == b"1234"
        sent = 0
        for _ in range(1_000):
            await asyncio.sleep(0)  # the loop sees that there is more
            try:
                sent += client.send(bytes(1 << 16))
            except BlockingIOError:
                break
        assert sent < 1 << 24
        assert not channel._received
        assert len(await channel.read_exactly(sent, LONG)) == sent
        return sent

    assert asyncio.run(read()) > 0


def test_a_client_that_takes_nothing_is_given_up(
    tmp_path: Path, ends: tuple[socket.socket, socket.socket]
) -> None:
    (tmp_path / "file").write_bytes(bytes(8 << 20))

    async def send(piece: bytearray | FileRange) -> None:
        with pytest.raises(TimeoutError):
            await PlainChannel(ends[0], LIMITS, Turns(1)).send(
                [bytearray(struct.pack(">i", 1)), piece]
            )

    with LocalFile(str(tmp_path / "file")) as file:
        for piece in (bytearray(8 << 20), FileRange(file, 0, 8 << 20)):
            asyncio.run(send(piece))
