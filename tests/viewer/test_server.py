"""Pages are served to whoever has the token, on loopback, under this name, and to nobody else."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from mcveto.viewer.server import PageServer


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer("<p>page</p>") as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def ask(server: PageServer, path: str, method: str = "GET", host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_page_for_the_token(server: PageServer) -> None:
    assert ask(server, f"/{server.token}/") == (200, b"<p>page</p>")
    assert ask(server, f"/{server.token}/?x=1")[0] == 200
    assert ask(server, f"/{server.token}/", host=f"localhost:{server.server_port}")[0] == 200
    assert ask(server, f"/{server.token}/", method="HEAD") == (200, b"")


@pytest.mark.parametrize("path", ["/", "/x/", "/../", "/%00", "/token", "/" + "a" * 32 + "/"])
def test_nothing_without_it(server: PageServer, path: str) -> None:
    status, body = ask(server, path)
    assert status == 404 and b"page" not in body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "", "localhost", "127.0.0.1:1"])
def test_nothing_under_another_name(server: PageServer, host: str) -> None:
    status, body = ask(server, f"/{server.token}/", host=host)
    assert status == 403 and b"page" not in body


def test_nothing_but_reading(server: PageServer) -> None:
    assert ask(server, f"/{server.token}/", method="POST")[0] == 501


def test_loopback_only_and_a_new_token_each_time(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with PageServer("") as other:
        assert other.token != server.token and len(other.token) >= 32
