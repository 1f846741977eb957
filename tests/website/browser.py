"""The built site in a browser without a screen: what a reader could not see.

``look.js`` does the looking, in a page that has the site's pages in frames; it sends what it found
to the server here. Needs Chromium, as Debian and Ubuntu package it; nothing is fetched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
"""Programs that are looked for on the ``PATH``; the variable ``CHROMIUM`` names another."""

_SCRIPT = Path(__file__).with_name("look.js")
_CHECKER = "/check.html"
_PATIENCE_SECONDS = 600
_MOST_BYTES = 10_000_000


class BrowserFailedError(RuntimeError):
    """The browser ended, or took too long, before it had seen every page."""


def find_browser() -> str | None:
    """Return the browser's program, or None."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class _Server(ThreadingHTTPServer):
    """Serves the site, and keeps what the browser says of it."""

    daemon_threads = True

    def __init__(self, site: Path, pages: Sequence[str]) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(site)))
        self.pages = pages
        self.problems: list[str] | None = None
        self.done = threading.Event()


class _Handler(SimpleHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Answer with the page that looks, its list of pages, or a file of the site."""
        if self.path == _CHECKER:
            script = _SCRIPT.read_text(encoding="utf-8")
            self._answer("text/html", f"<!DOCTYPE html><body><script>{script}</script>")
        elif self.path == "/pages.json":
            self._answer("application/json", json.dumps(self.server.pages))
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """Take what was found."""
        size = min(int(self.headers["Content-Length"]), _MOST_BYTES)
        self.server.problems = json.loads(self.rfile.read(size))
        self._answer("text/plain", "")
        self.server.done.set()

    def _answer(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - as the standard library has it
        """Say nothing of each request."""


def unseen(site: Path, browser: str, pages: Sequence[str] | None = None) -> list[str]:
    """Return what is wrong with the look of a site's pages, by default of all.

    Raises
    ------
    BrowserFailedError
        The browser did not get through.
    """
    if pages is None:
        found = (file.relative_to(site).as_posix() for file in site.rglob("*.html"))
        pages = sorted(page for page in found if page != "404.html")
    with _Server(site, [f"/{page}" for page in pages]) as server, TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}{_CHECKER}"
        # Without a sandbox, since root has none; the pages are our own.
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        with subprocess.Popen(
            [browser, *options, "--remote-debugging-port=0", address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            waited = threading.Thread(target=_release_at_end, args=(process, server), daemon=True)
            waited.start()
            server.done.wait(_PATIENCE_SECONDS)
            process.terminate()
            waited.join()
        server.shutdown()
        if server.problems is None:
            msg = f"{browser} ended before it had seen the pages"
            raise BrowserFailedError(msg)
        return server.problems


def _release_at_end(process: subprocess.Popen[str], server: _Server) -> None:
    """Drain what the browser says until it ends: then nobody has to wait for its answer."""
    process.communicate()
    server.done.set()
