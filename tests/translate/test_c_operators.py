"""Every P-code operator as C, compiled, against the operators of the reference emulator."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from mcveto.machine.compiled.nodes import Graph, Node
from mcveto.machine.operators import FUNCTIONS, TEMPLATES
from mcveto.translate import c_runtime
from mcveto.translate.c_expressions import Expressions, type_bits

from .running import WARNINGS, compiler

WIDTHS = (8, 16, 24, 32, 48, 64, 80, 128)
ARITY = {opcode: 1 + max(int(n) for n in "012" if f"{{{n}}}" in template) for opcode, template in TEMPLATES.items()}
TRUTH = {"BOOL_AND", "BOOL_OR", "BOOL_XOR", "BOOL_NEGATE"}
SHIFTS = {"INT_LEFT", "INT_RIGHT", "INT_SRIGHT"}


def interesting(generator: random.Random, bits: int) -> int:
    top = (1 << bits) - 1
    edges = (0, 1, 2, bits - 1, bits, top, top - 1, top >> 1, (top >> 1) + 1, (top >> 1) + 2)
    return generator.choice(edges) & top if generator.random() < 0.5 else generator.getrandbits(bits)


def test_every_operator_has_a_translation() -> None:
    for opcode in TEMPLATES:
        graph = Graph()
        arguments = tuple(graph.cell(number, 8) for number in range(ARITY[opcode]))
        node = _node(graph, opcode, arguments, 8, 8)
        assert Expressions(lambda number: (f"c{number}", 8), lambda line: None).text(node)


def _node(graph: Graph, opcode: str, arguments: tuple[Node, ...], bits: int, out: int) -> Node:
    if opcode in SHIFTS:
        return graph.shift(opcode, arguments[0], arguments[1], bits)
    return graph.apply(opcode, arguments, bits, out)


@pytest.mark.parametrize("constants", [False, True], ids=["variables", "constants"])
def test_operators_compute_the_same_in_c(tmp_path: Path, constants: bool) -> None:
    """Operands are variables, or with the last one a constant (which takes other ways through the printer)."""
    generator = random.Random(7)
    functions: list[str] = []
    expected: list[int] = []
    for opcode in sorted(TEMPLATES):
        for bits in (8,) if opcode in TRUTH else WIDTHS:
            out = 2 * bits if opcode in ("INT_ZEXT", "INT_SEXT") and bits <= 64 else bits
            if ARITY[opcode] == 1 and constants:
                continue
            for _ in range(6):
                width = 1 if opcode in TRUTH else bits
                values = tuple(interesting(generator, width) for _ in range(ARITY[opcode]))
                if opcode == "SELECT":
                    values = (values[0] & 1, *values[1:])
                declared: list[str] = []
                graph = Graph()
                expressions = Expressions(lambda number: (f"c{number}", 128), declared.append)
                arguments = [graph.cell(number, width) for number in range(len(values))]
                if constants:
                    arguments[-1] = graph.const(values[-1])
                node = _node(graph, opcode, tuple(arguments), bits, out)
                expressions.count([node])
                text = expressions.text(node, 128)
                names = "".join(
                    f"  u128 c{number} = {_literal(value)}; (void)c{number};\n" for number, value in enumerate(values)
                )
                body = "".join(f"  {line}\n" for line in declared)
                functions.append(f"static u128 f{len(functions)}(void) {{\n{names}{body}  return {text};\n}}")
                mask = (1 << bits) - 1
                expected.append(FUNCTIONS[opcode](values, (1 << out) - 1, mask, 1 << (bits - 1), bits))
    found = computed(functions, tmp_path)
    wrong = [functions[at] for at, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b]
    assert not wrong, "\n".join(wrong[:5])


def computed(functions: list[str], folder: Path) -> list[int]:
    """What C functions f0, f1, … return when they are compiled and called."""
    source = folder / "operators.c"
    calls = "\n".join(f"  show(f{number}());" for number in range(len(functions)))
    parts = [c_runtime.TYPES, "#include <stdio.h>\n", c_runtime.WIDE_TYPES, *map(c_runtime.operators, (32, 64, 128))]
    show = 'static void show(u128 v) { printf("%llx %llx\\n", (unsigned long long)(v >> 64), (unsigned long long)v); }'
    source.write_text("".join(parts) + "\n".join(functions) + f"\n{show}\nint main(void) {{\n{calls}\n}}\n")
    output = folder / "operators"
    done = subprocess.run([*compiler(), *WARNINGS, str(source), "-o", str(output)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    printed = subprocess.run([str(output)], capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(high, 16) << 64 | int(low, 16) for high, low in (line.split() for line in printed)]


def test_parts_of_two_values_side_by_side(tmp_path: Path) -> None:
    """Both together are wider than anything in C; what is taken out of them is not."""
    generator = random.Random(9)
    functions: list[str] = []
    expected: list[int] = []
    for low_bits in (64, 128):
        for bits in (8, 64, 128):
            for shift in (*range(0, low_bits + 129 - bits, 40), low_bits, low_bits - bits // 2):
                high, low = generator.getrandbits(128), generator.getrandbits(low_bits)
                declared: list[str] = []
                graph = Graph()
                expressions = Expressions(lambda number: (f"c{number}", 128), declared.append)
                pair = graph.concatenate(graph.cell(0, 128), graph.cell(1, low_bits), low_bits)
                node = graph.extract(pair, shift, bits)
                expressions.count([node])
                text = expressions.text(node, 128)
                names = f"  u128 c0 = {_literal(high)}, c1 = {_literal(low)};\n  (void)c0; (void)c1;\n"
                lines = "".join(f"  {line}\n" for line in declared)
                functions.append(f"static u128 f{len(functions)}(void) {{\n{names}{lines}  return {text};\n}}")
                expected.append((high << low_bits | low) >> shift & ((1 << bits) - 1))
    assert computed(functions, tmp_path) == expected


def _literal(value: int) -> str:
    return f"mc_u128(0x{value >> 64:x}ull, 0x{value & (1 << 64) - 1:x}ull)"


def test_values_wider_than_128_bits_are_refused() -> None:
    from mcveto.machine.faults import Unsupported

    with pytest.raises(Unsupported):
        type_bits(129)
