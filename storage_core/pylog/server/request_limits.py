"""What a client can make large, and the one rule that bounds it.

A request costs as many steps as it has *elements*: those of its arrays, and its tagged fields. They
are counted as the reader meets them, before memory is made for them. An answer is made while it is
written (`EachOf`), and the event loop has others' turn after each `SLICE_ELEMENTS` elements.

============================= ==================================================================
limit                         what happens above it
============================= ==================================================================
``SMALL_ELEMENTS``            the request is large: it is read in a thread, one at a time, and
                              waits for room among ``ROOM_ELEMENTS``
`most_elements`               the connection is closed, and the log says what to do
`SLICE_ELEMENTS`              the answer is large: one at a time is written, slice by slice
``MOST_ANSWER_BYTES``         the connection is closed, and the log says what to do
``LARGE_WAIT_MS``             a large fetch waits no longer for records
`Turns`, `Seats`              so many fetches, sends of files and new connections have their turn in
                              each round of the event loop, and so many fetches are in threads; the
                              others wait for theirs
============================= ==================================================================

What grows, by API. All arrays of a request count, even where an answer does not depend on them:

============================= ========================== =======================================
API                           the answer has one for     besides, it grows with
============================= ========================== =======================================
Fetch                         each partition asked for   bytes of records, from files
ListOffsets,                  each partition asked for   nothing; looks at files, in threads
OffsetForLeaderEpoch
Metadata, DescribeTopic-      each topic asked for, or   partitions of topics (2,000 a page of
Partitions                    all                        the second); loads 100, in threads
DescribeConfigs               each resource, once        some 40 configurations of each
ListConfigResources,          nothing asked for          topics, partitions of the directory
DescribeLogDirs
FindCoordinator               each key                   nothing
OffsetFetch                   each group, once, and      what groups have committed
                              each partition, once
OffsetCommit, OffsetDelete    each partition             nothing; kept bytes are limited
DescribeGroups, Consumer-     each group, once           members, and what they have sent
GroupDescribe
ListGroups                    nothing asked for          groups
DeleteGroups, LeaveGroup      each group, each member    nothing
JoinGroup, SyncGroup          nothing asked for          members, and what they have sent
ConsumerGroupHeartbeat        nothing asked for          partitions; a regular expression is
                                                         compiled in a thread, and has a length
Produce, CreateTopics and     each element asked for     nothing
all that is refused
ApiVersions, Heartbeat,       nothing asked for          nothing
DescribeCluster, DescribeAcls,
DescribeClientQuotas, Sasl…
============================= ========================== =======================================
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from pylog.internal_topics.message_writer import SLICE_ELEMENTS
from pylog.server.group_config import GROUP_MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from pylog.server.protocol import Api

_Value = TypeVar("_Value")
_Made = TypeVar("_Made")

SMALL_ELEMENTS = 100
SMALL_BYTES = 1 << 16
"""Requests and answers of fewer bytes are not counted among those that wait."""

ROOM_ELEMENTS = 1 << 18
"""Of all large requests that are being answered: some hundred bytes each."""

MOST_ANSWER_BYTES = 64 << 20
LARGE_WAIT_MS = 500
MOST_ELEMENTS = 1 << 15
"""More partitions than a Fetch of 1 MiB can name."""

_PLACES_FOR_A_NEW_ONE = 4
_WAITING = {"JoinGroup": SMALL_ELEMENTS, "SyncGroup": GROUP_MAX_SIZE}
"""Requests that wait for other members, and what they may hold meanwhile."""


def most_elements(api: Api) -> int:
    """Return how many elements a request may have."""
    return _WAITING.get(api.name, MOST_ELEMENTS)


async def in_turns(function: Callable[[_Value], _Made], values: Sequence[_Value]) -> list[_Made]:
    """Return what a function makes of each value; others have their turn again and again."""
    made: list[_Made] = []
    for start in range(0, len(values), SLICE_ELEMENTS):
        if start:
            await asyncio.sleep(0)
        made += map(function, values[start : start + SLICE_ELEMENTS])
    return made


class Rooms:
    """Room for what large requests hold: those that wait for members take none from the others."""

    def __init__(self, size: int = ROOM_ELEMENTS) -> None:
        self._waiting, self._others = Room(size), Room(size)

    def of(self, api: Api) -> Room:
        """Return the room that the requests of an API take from."""
        return self._waiting if api.name in _WAITING else self._others


class _Line:
    """Who waits: those who are known come first, but each fourth place is for one who is not.

    So a burst of new connections keeps nobody waiting who was there before. One thread, that of the
    event loop.
    """

    def __init__(self) -> None:
        self._known: deque[asyncio.Future[None]] = deque()
        self._new: deque[asyncio.Future[None]] = deque()
        self._places = 0

    def __bool__(self) -> bool:
        return bool(self._known or self._new)

    def join(self, *, is_known: bool) -> asyncio.Future[None]:
        """Return a future that is done when it is the caller's turn."""
        turn = asyncio.get_running_loop().create_future()
        (self._known if is_known else self._new).append(turn)
        return turn

    def call_next(self) -> bool:
        """Let the next one begin whose client is still there; return whether there was one."""
        while self:
            self._places += 1
            is_for_new = self._places % _PLACES_FOR_A_NEW_ONE == 0
            first, other = (self._new, self._known) if is_for_new else (self._known, self._new)
            turn = (first or other).popleft()
            if not turn.done():
                turn.set_result(None)
                return True
        return False


class Turns:
    """Lets so many begin in each round of the event loop: what comes in between waits for one.

    Hundreds of clients that ask at once would else all be answered in one round.
    """

    def __init__(self, in_a_round: int) -> None:
        self._in_a_round = self._left = in_a_round
        self._line = _Line()

    async def take(self, *, is_known: bool = True) -> None:
        """Return when it is the caller's turn."""
        if self._left:
            self._left -= 1
            if not self._left:  # only now is it looked at when the round ends: that is a round more
                asyncio.get_running_loop().call_soon(self._end_round)
            return
        await self._line.join(is_known=is_known)

    def _end_round(self) -> None:
        self._left = self._in_a_round
        while self._left and self._line.call_next():
            self._left -= 1
        if not self._left:
            asyncio.get_running_loop().call_soon(self._end_round)


class Seats:
    """Lets so many be at something at once; the others wait."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._line = _Line()

    @asynccontextmanager
    async def hold(self, *, is_known: bool) -> AsyncIterator[None]:
        """Hold a seat."""
        if self._free and not self._line:
            self._free -= 1
        else:
            turn = self._line.join(is_known=is_known)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._give_back()
                raise
        try:
            yield
        finally:
            self._give_back()

    def _give_back(self) -> None:
        if not self._line.call_next():
            self._free += 1


class Room:
    """Lets so much be held at once; who needs more than is left waits, first come first served.

    One thread, that of the event loop.
    """

    def __init__(self, size: int) -> None:
        self._rest = size
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[Held]:
        """Hold some of it, which may become less meanwhile."""
        await self._take(size)
        held = Held(self, size)
        try:
            yield held
        finally:
            held.shrink(0)

    async def _take(self, size: int) -> None:
        if not self._queue and size <= self._rest:
            self._rest -= size
            return
        place = size, asyncio.get_running_loop().create_future()
        self._queue.append(place)
        try:
            await place[1]
        except asyncio.CancelledError:
            if place in self._queue:
                self._queue.remove(place)
                size = 0
            self.give_back(size)
            raise

    def give_back(self, size: int) -> None:
        """Let others have it."""
        self._rest += size
        while self._queue and self._queue[0][0] <= self._rest:
            taken, future = self._queue.popleft()
            self._rest -= taken
            if future.done():  # its client is gone
                self._rest += taken
            else:
                future.set_result(None)


class Held:
    """The bytes that a request holds of a `Room`."""

    def __init__(self, room: Room, size: int) -> None:
        self._room = room
        self._size = size

    def shrink(self, size: int) -> None:
        """Give back all but ``size``."""
        self._room.give_back(self._size - size)
        self._size = size
