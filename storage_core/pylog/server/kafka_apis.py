"""`KafkaApis`: from the bytes of a request to the pieces of its response.

What a broker closes the connection for is a `RequestParseError`: a frame that breaks the format, an
API or a version that was not advertised. A handler that fails unexpectedly closes it, too, and the
log has the traceback. Large requests and answers are held apart: see `request_limits`.

Source: KafkaApis, ApiVersionManager, RequestContext.parseRequest,
SocketServer.processCompletedReceives (Kafka 4.4).
"""

from __future__ import annotations

import asyncio
import inspect
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pylog.internal_topics.message_reader import Readable, TooManyElementsError
from pylog.internal_topics.message_writer import Writable
from pylog.server.messages import APIS
from pylog.server.protocol import (
    Errors,
    RequestContext,
    RequestParseError,
    read_header,
    read_request,
    response_pieces,
    response_slices,
)
from pylog.server.request_limits import (
    MOST_ANSWER_BYTES,
    SMALL_BYTES,
    SMALL_ELEMENTS,
    Rooms,
    Turns,
    most_elements,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylog.internal_topics.message_writer import FileRange
    from pylog.server.protocol import Api, Handler, Request, RequestHeader, Response

_PRODUCE = 0
_SOFTWARE_VERSION = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
_MOST_READ_AT_ONCE = 1
_MOST_WRITTEN_AT_ONCE = 1
_FETCHES_IN_A_ROUND = 8


@dataclass(slots=True)
class Client:
    """The client of a connection, and the address that it is told to connect to."""

    client_host: str
    host: str
    port: int
    connection: int
    has_fetched: bool = False  # whether it has taken the response to a fetch if it asks again


class KafkaApis:
    """Reads requests, calls the handlers of their APIs and writes the responses.

    APIs without a handler are not advertised. A handler gets a request with all fields of its
    schema, which it must not change, and returns the response; it may be a coroutine.
    """

    def __init__(self, handlers: Mapping[Api, Handler], cluster_id: str) -> None:
        self._api_versions = ApiVersionManager([*handlers, APIS["ApiVersions"]], cluster_id)
        self._handlers = {
            **handlers,
            APIS["ApiVersions"]: self._api_versions.handle_api_versions,
        }
        self._apis = {api.key: api for api in self._handlers}
        self._rooms = Rooms()
        self._reading = asyncio.Semaphore(_MOST_READ_AT_ONCE)
        self._writing = asyncio.Semaphore(_MOST_WRITTEN_AT_ONCE)
        self._fetches = Turns(_FETCHES_IN_A_ROUND)

    async def handle(self, frame: bytes, client: Client) -> list[bytearray | FileRange]:
        """Return the pieces of the response; at a `RequestParseError` the connection is closed."""
        readable = Readable(frame, SMALL_ELEMENTS)
        header, api = read_header(readable, self._apis)
        if api is APIS["ApiVersions"] and header.version not in api.versions:
            # A client that is newer than the server asks again with what it is told (KIP-511).
            response = self._api_versions.response(Errors.UNSUPPORTED_VERSION)
            return response_pieces(api, 0, header.correlation_id, response)
        if api is APIS["Fetch"]:
            await self._fetches.take(is_known=client.has_fetched)
        context = RequestContext(
            api,
            header.version,
            header.client_id,
            client.client_host,
            client.host,
            client.port,
            client.connection,
            is_large=len(frame) > SMALL_BYTES,
            has_fetched=client.has_fetched,
        )
        client.has_fetched = client.has_fetched or api is APIS["Fetch"]
        try:
            request = read_request(api, readable, header.version)
        except TooManyElementsError:
            return await self._answer_large(frame, replace(context, is_large=True), header)
        return await self._answer(request, context, header)

    async def _answer_large(
        self, frame: bytes, context: RequestContext, header: RequestHeader
    ) -> list[bytearray | FileRange]:
        most = most_elements(context.api)
        async with self._rooms.of(context.api).hold(most) as held:
            readable = Readable(frame, most)
            async with self._reading:
                request = await asyncio.to_thread(_read_large, readable, context.api)
            held.shrink(readable.elements)
            return await self._answer(request, context, header)

    async def _answer(
        self, request: Request, context: RequestContext, header: RequestHeader
    ) -> list[bytearray | FileRange]:
        answer = self._handlers[context.api](request, context)
        response = await answer if inspect.isawaitable(answer) else answer
        writable = Writable()
        slices = response_slices(
            writable, context.api, header.version, header.correlation_id, response
        )
        if next(slices, _WRITTEN) is _WRITTEN:
            return writable.finished()
        async with self._writing:
            for _ in slices:
                if len(writable.buffer) > MOST_ANSWER_BYTES:
                    raise RequestParseError(
                        f"the answer to {context.api.name} has more than {MOST_ANSWER_BYTES} "
                        "bytes: ask for less at once"
                    )
                await asyncio.sleep(0)
        return writable.finished()


_WRITTEN = object()


def _read_large(readable: Readable, api: Api) -> Request:
    header, _ = read_header(readable, {api.key: api})
    try:
        return read_request(api, readable, header.version)
    except TooManyElementsError as error:
        reason = f"{api.name} request has {error.reason}: send several smaller ones"
        raise RequestParseError(reason) from error


class ApiVersionManager:
    """Answers ApiVersions; a client that expects another cluster is told so (KIP-1242)."""

    def __init__(self, apis: Iterable[Api], cluster_id: str) -> None:
        self._keys = sorted(
            (
                {"apiKey": api.key, "minVersion": _lowest(api), "maxVersion": api.versions.stop - 1}
                for api in apis
            ),
            key=lambda each: each["apiKey"],
        )
        self._cluster_id = cluster_id

    def response(self, error: Errors = Errors.NONE) -> Response:
        """Return the response, with an error for a version that does not exist."""
        return {"errorCode": error, "apiKeys": self._keys}

    def handle_api_versions(self, request: Request, context: RequestContext) -> Response:
        """Answer ApiVersions."""
        if context.version >= _SOFTWARE_VERSION and not (
            _SOFTWARE.fullmatch(request["clientSoftwareName"])
            and _SOFTWARE.fullmatch(request["clientSoftwareVersion"])
        ):
            return {"errorCode": Errors.INVALID_REQUEST, "apiKeys": []}
        expected = request["clusterId"]
        if context.version >= 5 and expected not in (None, self._cluster_id):
            return {"errorCode": Errors.REBOOTSTRAP_REQUIRED, "apiKeys": []}
        return self.response()


def _lowest(api: Api) -> int:
    # librdkafka does not fetch unless Produce is there from version 0, which brokers, too,
    # advertise without having it (KAFKA-18659).
    return 0 if api.key == _PRODUCE else api.versions.start
