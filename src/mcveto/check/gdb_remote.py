"""The remote protocol of gdb, as far as a replay needs it: registers, memory, single steps.

Written from the description in gdb's manual (appendix "Remote Serial Protocol"). Whoever answers may have died or talk
nonsense: that is `Disconnected`, never a wrong value.
"""

from __future__ import annotations

import socket

_LONGEST_MEMORY = 1024


class Disconnected(Exception):
    """The other side is gone, refuses a request, or cannot be understood."""


class GdbRemote:
    def __init__(self, path: str, seconds: float) -> None:
        """Connects to a socket in the file system; raises OSError if nobody listens there."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(seconds)
        self._received = b""
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: str) -> str:
        """The answer to a request; an empty one if it is not known there."""
        content = request.encode()
        try:
            self._socket.sendall(b"$%s#%02x" % (content, sum(content) & 0xFF))
            while True:
                start = self._received.find(b"$")
                end = self._received.find(b"#", start)
                if start >= 0 and len(self._received) >= end + 3 > 3:
                    answer, self._received = self._received[start + 1 : end], self._received[end + 3 :]
                    self._socket.sendall(b"+")
                    return _expanded(answer.decode("latin-1"))
                more = self._socket.recv(1 << 16)
                if not more:
                    raise Disconnected("the connection was closed")
                self._received += more
        except OSError as error:
            raise Disconnected(str(error)) from None

    def register(self, number: int) -> bytes:
        return _bytes(self.ask(f"p{number:x}"))

    def set_register(self, number: int, content: bytes) -> None:
        _require_ok(self.ask(f"P{number:x}={content.hex()}"))

    def all_registers(self) -> bytes:
        return _bytes(self.ask("g"))

    def set_all_registers(self, content: bytes) -> None:
        _require_ok(self.ask(f"G{content.hex()}"))

    def read(self, address: int, size: int) -> bytes:
        content = b""
        while len(content) < size:
            length = min(size - len(content), _LONGEST_MEMORY)
            part = _bytes(self.ask(f"m{address + len(content):x},{length:x}"))
            if len(part) != length:
                raise Disconnected(f"no memory at {address + len(content):#x}")
            content += part
        return content

    def write(self, address: int, content: bytes) -> None:
        for start in range(0, len(content), _LONGEST_MEMORY):
            part = content[start : start + _LONGEST_MEMORY]
            _require_ok(self.ask(f"M{address + start:x},{len(part):x}:{part.hex()}"))

    def step(self) -> int | None:
        """Executes one instruction; the signal that stopped the process, None if it has ended."""
        answer = self.ask("s")
        if answer[:1] in ("W", "X"):
            return None
        if answer[:1] not in ("T", "S") or len(answer) < 3:
            raise Disconnected(f"'{answer[:40]}' is no reason to stop")
        return int(answer[1:3], 16)


def _bytes(answer: str) -> bytes:
    try:
        if answer and len(answer) % 2 == 0:
            return bytes.fromhex(answer)
    except ValueError:
        pass
    raise Disconnected(f"refused ({answer[:20] or 'not known there'})")


def _require_ok(answer: str) -> None:
    if answer != "OK":
        raise Disconnected(f"refused ({answer[:20] or 'not known there'})")


def _expanded(answer: str) -> str:
    """Without run-length encoding: a character, `*`, and a character that says how often more."""
    result: list[str] = []
    at = 0
    while at < len(answer):
        if answer[at] == "*" and result and at + 1 < len(answer):
            result.append(result[-1][-1] * (ord(answer[at + 1]) - 29))
            at += 2
        else:
            result.append(answer[at])
            at += 1
    return "".join(result)
