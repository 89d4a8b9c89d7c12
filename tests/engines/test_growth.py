"""How time grows with the size of a program: not faster than its square, by processor time of the whole answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcveto.program.program import load_program
from mcveto.program.spec import InputCall, PropertySpec, RegionPermissions, Spec
from mcveto.search import Question, search

BASE, INPUT = 0x1000, 0x8000
# What every answer costs, however small the program is; and noise.
SECONDS_AT_LEAST = 0.5
SLACK = 2.0


class Code:
    """Machine code for x86-32 with jumps to places named later."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._places: dict[str, int] = {}
        self._open: list[tuple[int, str]] = []

    def emit(self, text: str) -> None:
        self.bytes += bytes.fromhex(text)

    def jump(self, opcode: str, place: str) -> None:
        self.emit(opcode)
        self._open.append((len(self.bytes), place))
        self.emit("00000000")

    def call_input(self) -> None:
        self.emit("e8" + (INPUT - BASE - len(self.bytes) - 5).to_bytes(4, "little", signed=True).hex())

    def here(self, place: str) -> None:
        self._places[place] = len(self.bytes)

    def finished(self) -> tuple[bytes, dict[str, int]]:
        for at, place in self._open:
            self.bytes[at : at + 4] = (self._places[place] - at - 4).to_bytes(4, "little", signed=True)
        content = bytes(self.bytes).ljust(INPUT - BASE, b"\x90") + b"\xc3"
        return content, {place: BASE + at for place, at in self._places.items()}


def locks(count: int) -> Code:
    """Which of `count` locks are taken is chosen once; an endless loop takes and releases them. It is correct."""
    code = Code()
    code.emit("81ec00010000")  # sub esp, 256
    chosen, held = [f"4424{8 * i:02x}" for i in range(count)], [f"4424{8 * i + 4:02x}" for i in range(count)]
    for place in chosen:
        code.call_input()
        code.emit("89" + place)  # mov [chosen], eax
    code.here("again")
    code.call_input()
    code.emit("85c0")
    code.jump("0f84", "out")
    for place in held:
        code.emit(f"c7{place}00000000")
    for choice, place in zip(chosen, held, strict=True):
        code.emit(f"837c{choice[2:]}00 7408 c7{place}01000000")  # if chosen: held = 1
    for choice, place in zip(chosen, held, strict=True):
        code.emit(f"837c{choice[2:]}00 7413 837c{place[2:]}01")  # if chosen: must be held
        code.jump("0f85", "error")
        code.emit(f"c7{place}00000000")
    code.jump("e9", "again")
    code.here("out")
    code.emit("81c400010000 c3")
    code.here("error")
    code.emit("90")
    return code


def straight(count: int) -> Code:
    """`count` additions of an input to itself and to constants, and a comparison that never holds: the sum is even."""
    code = Code()
    code.call_input()
    code.emit("01c0")
    for number in range(count):
        code.emit(f"05{2 * number:02x}000000" if number % 2 and number < 120 else "01c0" if number % 3 else "83c002")
    code.emit("a801")  # test al, 1
    code.jump("0f85", "error")
    code.emit("c3")
    code.here("error")
    code.emit("90")
    return code


def nested(depth: int) -> Code:
    """Loops within each other, all up to the same input; inside of all of them, every counter is below it."""
    code = Code()
    code.emit("81ec00010000")  # sub esp, 256
    code.call_input()
    code.emit("89442440")  # mov [esp+64], eax
    for level in range(depth):
        code.emit(f"c74424{4 * level:02x}00000000")  # mov [counter], 0
        code.here(f"head{level}")
        code.emit(f"8b4424{4 * level:02x} 3b442440")  # mov eax, [counter]; cmp eax, [esp+64]
        code.jump("0f83", f"end{level}")
    for level in range(depth):
        code.emit(f"8b4424{4 * level:02x} 3b442440")
        code.jump("0f83", "error")
    for level in reversed(range(depth)):
        code.emit(f"ff4424{4 * level:02x}")  # inc [counter]
        code.jump("e9", f"head{level}")
        code.here(f"end{level}")
    code.emit("81c400010000 c3")
    code.here("error")
    code.emit("90")
    return code


def seconds(folder: Path, code: Code) -> float:
    content, places = code.finished()
    file = folder / "blob"
    file.write_bytes(content)
    properties = (PropertySpec("reach", (places["error"],)),)
    spec = Spec(
        arch="x86-32",
        base=BASE,
        entry=BASE,
        input_calls=(InputCall(INPUT),),
        regions=(RegionPermissions(BASE, len(content), "rx"),),
        properties=properties,
    )
    verdict = search(lambda: load_program(str(file), spec), Question(timeout=600.0)).verdict
    assert verdict.kind == "proved", verdict.headline
    return max(float(verdict.statistics["cpu_seconds"]), SECONDS_AT_LEAST)


@pytest.mark.slow
def test_locks(tmp_path: Path) -> None:
    few, more, many = (seconds(tmp_path, locks(count)) for count in (5, 10, 15))
    assert more <= SLACK * 4 * few
    assert many <= SLACK * 9 * few


@pytest.mark.slow
def test_straight_code(tmp_path: Path) -> None:
    short, long = (seconds(tmp_path, straight(count)) for count in (1000, 5000))
    assert long <= SLACK * 25 * short


@pytest.mark.slow
def test_nested_loops(tmp_path: Path) -> None:
    one, *deeper = (seconds(tmp_path, nested(depth)) for depth in (1, 2, 3, 4))
    for depth, spent in enumerate(deeper, start=2):
        assert spent <= SLACK * depth**2 * one
