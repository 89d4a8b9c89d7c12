"""The pages on the loopback interface, for whoever has the address: it contains a random token.

Nothing but the one page is served. Requests with another token, another Host header (a name that some web page had
resolved to this computer) or another method than GET and HEAD are refused.
"""

from __future__ import annotations

import hmac
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOPBACK = "127.0.0.1"


class PageServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, html: str, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        self.body = html.encode()
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        return (f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}")


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "mcveto"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        if (self.headers.get("Host") or "") not in self.server.hosts:
            self._send(403, b"wrong host\n", "text/plain", with_body)
            return
        path = self.path.partition("?")[0]
        if not hmac.compare_digest(path.strip("/").encode(), self.server.token.encode()):
            self._send(404, b"there is nothing here\n", "text/plain", with_body)
            return
        self._send(200, self.server.body, "text/html; charset=utf-8", with_body)

    def _send(self, status: int, body: bytes, kind: str, with_body: bool) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address contains the token."""
