"""Spec files: what they mean, and that nothing in them can bring the reader down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcveto.errors import InputFileError, UsageError
from mcveto.program.spec import InputCall, InputMemory, PropertySpec, Spec, load_spec, parse_spec

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

FULL = """
binary: prog.elf
arch: x86-32
base: 0x400000
entry: 0x8049000
inputs:
  calls:     {0x8049050: {bits: 32}, read_byte: {bits: 8, signed: true}}
  registers: [ECX]
  memory:    [{at: 0x804c000, size: 16}]
assume: [check+4]
halt: [0x8049070]
stack: 65536
properties: [{reach: [0x8049012]}, return-address]
expected: proved
"""


def test_every_key(tmp_path: Path) -> None:
    path = tmp_path / "full.yaml"
    path.write_text(FULL)
    spec = load_spec(str(path))
    assert spec == Spec(
        path=str(path),
        binary="prog.elf",
        arch="x86-32",
        base=0x400000,
        entry=0x8049000,
        input_calls=(InputCall(0x8049050, 32), InputCall("read_byte", 8, True)),
        input_registers=("ECX",),
        input_memory=(InputMemory(0x804C000, 16),),
        assume=("check+4",),
        halt=(0x8049070,),
        stack=65536,
        properties=(PropertySpec("reach", (0x8049012,)), PropertySpec("return-address")),
        expected="proved",
    )
    assert spec.binary_path() == tmp_path / "prog.elf"


def test_empty_spec(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing\n")
    assert load_spec(str(path)) == Spec(path=str(path))


@pytest.mark.parametrize("number", ["0644", "12:30:45", "1_000", "0b11"])
def test_numbers_are_decimal_or_hexadecimal(tmp_path: Path, number: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"base: {number}\n")
    with pytest.raises(UsageError, match="base must be a non-negative number"):
        load_spec(str(path))


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_examples_are_valid_and_read_as_plain_yaml_reads_them(path: Path) -> None:
    assert load_spec(str(path)) == parse_spec(yaml.safe_load(path.read_text()), str(path))


KEYS = ["binary", "arch", "base", "entry", "inputs", "assume", "halt", "stack", "properties", "expected", "x", "<<"]
INNER = ["calls", "registers", "memory", "stdin", "argv", "at", "size", "bits", "signed", "reach", "typestate"]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**4000, -1, 0, 1 << 70, "main+4", "x86-32", "proved", "return-address"])
    | st.dates()
    | st.binary(max_size=4)
)
NAMES = st.sampled_from(KEYS + INNER) | st.text(max_size=5) | st.integers() | st.none()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4) | VALUES)
def test_any_structure_is_a_spec_or_an_error_of_the_user(raw: Any) -> None:
    try:
        spec = parse_spec(raw)
    except (UsageError, InputFileError) as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(spec, Spec)


PIECES = st.sampled_from(
    [*KEYS, *INNER, ": ", "\n", "  ", "- ", "[", "]", "{", "}", ", ", "0x10", "'", '"', "&a", "*a"]
)
TAGS = st.sampled_from(
    ["!!int ", "!!bool ", "!!set ", "!!timestamp ", "!!float ", "!!binary ", "? ", "|\n", "%", "---\n"]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES | TAGS | st.text(max_size=3), max_size=30).map("".join) | st.binary(max_size=60))
def test_any_file_is_a_spec_or_an_error_of_the_user(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "fuzz.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    try:
        load_spec(str(path))
    except (UsageError, InputFileError) as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 1000
