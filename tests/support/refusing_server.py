"""A server that answers every request with one status and no more."""

from __future__ import annotations

import os
import sys

from tests.support.server_program import ServerProgram

_PROGRAM = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(int(sys.argv[1]))
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_HEAD = do_GET
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
"""


class RefusingServer(ServerProgram):
    """The server, in a process of its own: some clients keep others of theirs waiting."""

    def __init__(self, status: int) -> None:
        command = [sys.executable, "-c", _PROGRAM, str(status)]
        super().__init__("the refusing server", command, os.environ, r"port (\d+)")
