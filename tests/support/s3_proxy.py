"""A proxy before an S3 server: notes what is requested, and fails where a test wants it to."""

from __future__ import annotations

import http.client
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

HOST = "127.0.0.1"
_DROPPED_HEADERS = {"connection", "transfer-encoding", "keep-alive", "content-length"}


class Request(NamedTuple):
    """One request that came; ``body_bytes`` counts what the server answered with."""

    method: str
    path: str
    is_listing: bool
    body_bytes: int
    was_refused: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class Redirect(NamedTuple):
    """An answer that sends the client to another host."""

    status: int
    endpoint: str


@dataclass
class Traffic:
    """What came through since the last `Proxy.begin`."""

    requests: list[Request]

    @property
    def body_bytes(self) -> int:
        """Bytes of files that were fetched; listings do not count."""
        return sum(each.body_bytes for each in self.requests if not each.is_listing)

    def bytes_of(self, suffix: str) -> int:
        """Return how many bytes of files of a kind were fetched."""
        return sum(
            each.body_bytes
            for each in self.requests
            if each.method == "GET" and not each.is_listing and each.path.endswith(suffix)
        )

    def count(self, method: str, suffix: str = "") -> int:
        """Return how many requests for files of a kind there were."""
        return sum(
            each.method == method and not each.is_listing and each.path.endswith(suffix)
            for each in self.requests
        )

    @property
    def listings(self) -> list[str]:
        """What was listed, in order."""
        return [each.path for each in self.requests if each.is_listing]

    def __str__(self) -> str:
        return (
            f"{len(self.requests)} requests ({self.count('GET')} GET, {self.count('HEAD')} HEAD, "
            f"{len(self.listings)} LIST), {self.body_bytes} bytes"
        )


class Proxy:
    """Passes requests on to ``endpoint``; any number at a time.

    Attributes
    ----------
    refuse
        Asked for every request with its method, path and how many there were before; what it
        returns is done instead: ``"close"`` the connection, ``"cut"`` the body in its middle and
        close, ``"hang"`` until `release`, or answer with an HTTP status or a `Redirect`. None
        passes it on.
    """

    def __init__(self, endpoint: str) -> None:
        self._upstream = endpoint
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._released = threading.Event()
        self.refuse: Callable[[str, str, int], str | int | Redirect | None] = lambda *_: None
        self._server = ThreadingHTTPServer((HOST, 0), _handler_of(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        """Host and port."""
        return f"{HOST}:{self._server.server_address[1]}"

    def begin(self) -> None:
        """Forget what came until now, and pass everything on."""
        with self._lock:
            self._requests = []
        self.refuse = lambda *_: None

    def traffic(self) -> Traffic:
        """Return what has come."""
        with self._lock:
            return Traffic(list(self._requests))

    def release(self) -> None:
        """Close the connections that hang."""
        self._released.set()

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        parts = urlsplit(handler.path)
        is_listing = "list-type=" in parts.query
        path = unquote(parts.path)
        with self._lock:
            before = len(self._requests)
        what = self.refuse(handler.command, path, before)
        status, body = 500, b""
        headers: list[tuple[str, str]] = []
        if what is None or what == "cut":
            status, headers, body = self._pass_on(handler)
        sent = tuple(handler.headers.items())
        request = Request(handler.command, path, is_listing, len(body), what is not None, sent)
        with self._lock:
            self._requests.append(request)
        if what == "hang":
            self._released.wait()
        if what in ("close", "hang"):
            handler.close_connection = True
            return
        if isinstance(what, int):
            status = what
        if isinstance(what, Redirect):
            status, headers = what.status, [("Location", f"http://{what.endpoint}{handler.path}")]
        _answer(handler, status, headers, body, is_cut=what == "cut")

    def _pass_on(self, handler: BaseHTTPRequestHandler) -> tuple[int, list[tuple[str, str]], bytes]:
        length = int(handler.headers.get("Content-Length") or 0)
        connection = http.client.HTTPConnection(self._upstream, timeout=60)
        try:
            connection.request(
                handler.command,
                handler.path,
                body=handler.rfile.read(length) if length else None,
                headers=dict(handler.headers),
            )
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        except OSError:
            return 503, [], b""  # the server behind is gone
        finally:
            connection.close()


def _answer(
    handler: BaseHTTPRequestHandler,
    status: int,
    headers: list[tuple[str, str]],
    body: bytes,
    *,
    is_cut: bool,
) -> None:
    handler.send_response_only(status)
    length = str(len(body))
    for name, text in headers:
        if handler.command == "HEAD" and name.lower() == "content-length":
            length = text  # that of the file: a HEAD has no body
        elif name.lower() not in _DROPPED_HEADERS:
            handler.send_header(name, text)
    handler.send_header("Content-Length", length)
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2] if is_cut else body)
    handler.close_connection = handler.close_connection or is_cut


def _handler_of(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else a body waits 40 ms after its head

        def handle_request(self) -> None:
            proxy.handle(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Say nothing: requests are counted, not logged."""

    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_request)
    return Handler
