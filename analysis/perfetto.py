"""Show one trace in Perfetto: serve the file on the loopback address until the site has fetched it.

Perfetto's site may read no other address than http://127.0.0.1:9001 (its Content-Security-Policy), and the trace never
leaves this machine: the site's script reads it in the browser.
"""

import os
import re
import shutil
import socket
import sys
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from analysis.output import OutputError

SITE = "https://ui.perfetto.dev"
ADDRESS = "127.0.0.1"
PORT = 9001
LIMIT_S = 600.0
SILENT_S = 10.0
"""Seconds after which a client that sends nothing is left alone."""


class Server(ThreadingHTTPServer):
    """Serves one file to Perfetto's site, and knows whether it was fetched. `server_port` is the port it got.

    A thread for each client, since browsers open connections on which they send nothing.
    """

    def __init__(self, path: Path, port: int = PORT, span_ns: tuple[int, int] | None = None) -> None:
        """span_ns: first and last nanosecond of the trace to show; None for all.

        Raises OutputError: another program has the port.
        """
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError as error:
            raise OutputError(
                f"port {port} of {ADDRESS}, the only one that Perfetto's site may read, cannot be had "
                f"({error.strerror}): end the program that holds it (another --open?), or open {path} on {SITE} by hand"
            ) from error
        self.path = path
        self.name = re.sub(r"[^A-Za-z0-9._-]", "_", path.name)
        self.span_ns = span_ns
        self.fetched = False
        self.timeout = 0.2

    def serve(self, limit_s: float = LIMIT_S) -> bool:
        """Answer until the file has been fetched, or for `limit_s` seconds; whether it has."""
        end = time.monotonic() + limit_s
        while not self.fetched and time.monotonic() < end:
            self.handle_request()
        return self.fetched

    @property
    def link(self) -> str:
        """The page that opens the file, at the span."""
        shown = "" if self.span_ns is None else f"&visStart={self.span_ns[0]}&visEnd={self.span_ns[1]}"
        return f"{SITE}/#!/?url=http://{ADDRESS}:{self.server_port}/{self.name}{shown}"


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD of the one file; any other path, and any other host's name for this address, is refused."""

    server: Server
    timeout = SILENT_S

    def do_GET(self) -> None:
        """Send the file."""
        # A browser that goes away in the middle asks again, or nobody does until the limit.
        with suppress(ConnectionError, TimeoutError):
            if self._accepted():
                with self.server.path.open("rb") as file:
                    shutil.copyfileobj(file, self.wfile)
                self.server.fetched = True

    def do_HEAD(self) -> None:
        """Send the size of the file."""
        self._accepted()

    def _accepted(self) -> bool:
        # A page of another site can give its own name this address (DNS rebinding): then Host is that name.
        if self.headers.get("Host") not in [f"{name}:{self.server.server_port}" for name in (ADDRESS, "localhost")]:
            self.send_error(403)
            return False
        if self.path.partition("?")[0] != f"/{self.server.name}":
            self.send_error(404)
            return False
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(self.server.path.stat().st_size))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        return True

    def end_headers(self) -> None:
        """Let Perfetto's site alone read the answer."""
        self.send_header("Access-Control-Allow-Origin", SITE)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of each request."""


def show(
    path: Path,
    open_browser: Callable[[str], bool] = webbrowser.open,
    port: int = PORT,
    span_ns: tuple[int, int] | None = None,
) -> bool:
    """Open the trace `path` in the user's browser, and serve it until it was fetched; whether it was.

    span_ns: what to show of it, nanoseconds of the trace; None for all.

    Where no browser can be opened (over SSH, without a display), the link is printed, and the tunnel that it needs.

    Raises:
        OutputError: the port is taken.
    """
    with Server(path, port, span_ns) as server:
        if not reason_not_to_open() and open_browser(server.link):
            _say(f"opening {server.link}")
        else:
            _say(by_hand(server.link))
        fetched = server.serve()
    if not fetched:
        _say(f"nobody fetched the trace within {LIMIT_S / 60:g} minutes; it lies at {path}")
    return fetched


def reason_not_to_open() -> str | None:
    """Why a browser that is opened here would not be seen by the user; None where it would."""
    if os.environ.get("SSH_CONNECTION"):
        return "this is an SSH session"
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return "there is no display"
    return None


def by_hand(link: str) -> str:
    """What the user does where no browser opens."""
    reason = reason_not_to_open() or "no browser could be opened"
    tunnel = f"ssh -N -L {PORT}:{ADDRESS}:{PORT} {socket.gethostname()}"
    return (
        f"{reason}: open the link in a browser within {LIMIT_S / 60:g} minutes (Ctrl-C ends the wait)\n"
        f"  on another machine first, and left running:  {tunnel}\n  {link}"
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr)
