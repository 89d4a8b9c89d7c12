"""Programs: entry state, inputs at entry, what the file does not determine, concrete and symbolic runs agree."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mcveto.errors import UsageError
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.emulator import Machine
from mcveto.machine.isa import isa_rows
from mcveto.program.entry_state import GUARD, free_area, stack_region
from mcveto.program.exits import _value, follow_to_end, run_to_end
from mcveto.program.image import load_image
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program, make_program
from mcveto.program.spec import InputCall, InputMemory, Spec, load_spec

from .fixtures import IMAGES
from .raw_programs import BASE, raw_program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SPECS = sorted(EXAMPLES.rglob("*.yaml"))
CHECKSUMS = sorted((EXAMPLES / "machine" / "checksum").glob("*.yaml"))
ISAS = sorted(isa_rows())


def name_of(path: Path) -> str:
    return str(path.relative_to(EXAMPLES).with_suffix(""))


def load(path: Path) -> Program:
    return load_program(None, load_spec(str(path)))


@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_concrete_and_symbolic_runs_agree(path: Path) -> None:
    """Same path, same end, same registers, for several seeds; the path constraint holds for the values used."""
    program = load(path)
    # Most programs turn in their loops long before that; the other seed is about what inputs decide.
    for seed, steps in ((0, 400), (1, 150)):
        source, again = InputSource((), seed), InputSource((), seed)
        machine = program.machine(source, seed)
        outcome = run_to_end(program, machine, steps)
        execution = program.concolic(again, seed)
        pcs = []
        limit = outcome.steps if outcome.kind == "limit" else steps + 1
        while execution.steps < min(outcome.steps, limit):
            pcs.append(execution.pc)
            execution.step()
        assert pcs == list(machine.trace.pcs())
        ended = follow_to_end(program, execution, steps)
        assert (ended.kind, ended.pc, ended.fault) == (outcome.kind, outcome.pc, outcome.fault)
        assert again.consumed == source.consumed
        if outcome.kind not in ("fault", "unsupported"):
            row = program.decoder.row
            for name in (*row.general, *row.flags):
                assert _value(program, execution, name) == machine.read(name), name
        assert all(execution.evaluator.value(item.term) == 1 for item in execution.path)


# Code that was not optimised runs for millions of steps: of one instruction set always, of all in the slow tests.
UNOPTIMISED = [path for path in CHECKSUMS if path.stem.endswith("-O0") and not path.stem.startswith("ppc32-be")]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow) if path in UNOPTIMISED else path for path in CHECKSUMS],
    ids=name_of,
)
def test_checksum(path: Path) -> None:
    """The same C program gives the same result on every instruction set."""
    program = load(path)
    machine = program.machine(InputSource(), make=CompiledMachine)
    outcome = run_to_end(program, machine, 5_000_000)
    assert outcome.kind == "halted", outcome
    expected = program.spec.notes["expected_result"]
    content = machine.memory.peek(expected["at"], expected["size"])
    assert content is not None
    order = "big" if program.decoder.row.big_endian else "little"
    assert int.from_bytes(content, order) == expected["value"]  # type: ignore[arg-type]


@pytest.mark.parametrize("isa", ISAS)
def test_entry_state(isa: str, tmp_path: Path) -> None:
    program = raw_program(tmp_path, isa, Spec(halt=(BASE,), stack=8192))
    row = program.decoder.row
    (stack,) = (region for region in program.space.regions if region.name == "stack")
    assert stack.size == 8192 + 4096
    for address in (stack.start - 1, stack.end, stack.start - GUARD, stack.end + GUARD - 1, program.return_sentinel):
        assert program.space.region_at(address) is None
    for seed in (0, 5):
        machine = program.machine(InputSource(), seed)
        pointer = machine.read(row.stack_pointer)
        assert stack.start <= pointer < stack.end
        assert pointer % 4 == 0
        back = machine.memory.load(pointer, row.address_bytes) if row.pushes_return_address else None
        assert (machine.read(row.return_address) if back is None else back) == program.return_sentinel
        others = [machine.read(name) for name in row.general if name not in (row.stack_pointer, row.return_address)]
        assert any(others) is bool(seed) or row.overlay == "mips"
    assert any(row.stack_pointer in text for text in program.assumptions)


@pytest.mark.parametrize("isa", ISAS)
def test_input_registers(isa: str, tmp_path: Path) -> None:
    """Every register that may be an input receives exactly its value, concretely and symbolically."""
    row = isa_rows()[isa]
    fixed = {row.stack_pointer, row.return_address, "DF", *(["t9"] if row.overlay == "mips" else [])}
    names = [name for name in (*row.general, *row.flags) if name not in fixed]
    program = raw_program(tmp_path, isa, Spec(halt=(BASE,), input_registers=tuple(names)))
    values = [(0x1234567 * (index + 3)) & ((1 << r.bits) - 1) for index, r in enumerate(program.input_registers)]
    machine = program.machine(InputSource(values))
    execution = program.concolic(InputSource(values))
    for name, value in zip(names, values, strict=True):
        assert machine.read(name) == value
        assert _value(program, execution, name) == value
    with pytest.raises(UsageError, match="fixed at entry"):
        raw_program(tmp_path, isa, Spec(input_registers=(row.stack_pointer,)))


def test_input_memory(tmp_path: Path) -> None:
    spec = Spec(halt=(BASE,), input_memory=(InputMemory(BASE + 8, 4), InputMemory(BASE + 1, 2)))
    program = raw_program(tmp_path, "x86-32", spec)
    machine = program.machine(InputSource([1, 2, 3, 4, 5, 6]))
    assert machine.memory.peek(BASE, 13) == bytes([0, 5, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0])


def test_unspecified_memory_depends_on_the_seed(tmp_path: Path) -> None:
    program = raw_program(tmp_path, "arm", Spec(halt=(BASE,), stack=8192))
    (stack,) = (region for region in program.space.regions if region.name == "stack")
    contents = [program.machine(InputSource(), seed).memory.peek(stack.start, stack.size) for seed in (0, 3, 3, 4)]
    assert contents[0] == bytes(stack.size)
    assert contents[1] == contents[2] != contents[3]
    choices = program.choices(InputSource(), 3)
    assert contents[1] is not None
    assert bytes(choices.byte(stack.start + i) for i in range(5000)) == contents[1][:5000]


def test_targets_can_be_ignored() -> None:
    program = load(EXAMPLES / "demo" / "demo.yaml")
    bad = InputSource([103, 32, 25])
    outcome = run_to_end(program, program.machine(bad, stop_at_targets=False), 1000)
    assert (outcome.kind, outcome.pc) == ("halted", 0x8048120)


def test_stack_and_free_areas_keep_their_distance() -> None:
    image = [(0x1000, 0x2000), (0x7FFE0000, 0x80000000), (0xFFFF0000, 0x100000000)]
    stack = stack_region(image, 1 << 20, 32)
    area = free_area([*image, (stack.start, stack.end)], 1 << 20, 32)
    taken = [*image, (stack.start, stack.end)]
    for low, high in image:
        assert stack.end + GUARD <= low or high + GUARD <= stack.start
    for low, high in taken:
        assert area + (1 << 20) + GUARD <= low or high + GUARD <= area
    with pytest.raises(UsageError, match="no room"):
        stack_region([(0x20000, 0xFFFF0000)], 1 << 20, 32)


def test_undefined_data_is_unsupported_and_null_is_a_fault(tmp_path: Path) -> None:
    """In an object file, what lies behind an undefined symbol is unknown; the first page is not."""
    image = load_image(IMAGES / "x86-64.o")
    program = make_program(image, Spec(entry="_start", halt=("nondet",)))
    assert image.import_area is not None
    start, end = image.import_area
    for address in (start, end - 1, end, end + 5000, start - 1):
        assert program.undetermined.is_foreign(address)
    for address in (0, 0x1000, program.space.regions[-1].start - 1):
        assert not program.undetermined.is_foreign(address)
    assert program.undetermined.describe(start, None) == "import nondet"


def test_code_that_the_file_does_not_determine_is_not_executed(tmp_path: Path) -> None:
    """nop; mov eax, ????; ret — with the immediate unspecified, the first instruction runs and the second stops."""
    path = tmp_path / "x.bin"
    path.write_bytes(b"\x90\xb8\0\0\0\0\xc3" + bytes(9))
    image = dataclasses.replace(
        load_image(path, arch="x86-32", base=BASE, entry=BASE), unspecified=((BASE + 3, BASE + 5),)
    )
    program = make_program(image, Spec())
    for make in (Machine, CompiledMachine):
        outcome = run_to_end(program, program.machine(InputSource(), make=make), 10)
        assert (outcome.kind, outcome.pc, outcome.steps) == ("unsupported", BASE + 1, 1)
        assert "code that the file does not determine" in outcome.detail
    ended = follow_to_end(program, program.concolic(InputSource()), 10)
    assert (ended.kind, ended.pc) == ("unsupported", BASE + 1)
    behind = make_program(image, Spec(entry=BASE + 6))
    assert run_to_end(behind, behind.machine(InputSource()), 10).kind == "halted"


def test_unspecified_cells_are_recognised_as_code_and_as_data(tmp_path: Path) -> None:
    cell = BASE + 16
    codes = {
        b"\xff\x25" + cell.to_bytes(4, "little"): "jump to",  # jmp [cell]
        b"\xa1" + cell.to_bytes(4, "little") + b"\x8b\x00": "read of",  # mov eax, [cell]; mov eax, [eax]
        b"\xa1" + cell.to_bytes(4, "little") + b"\x88\x48\x40": "write to",  # mov eax, [cell]; mov [eax+64], cl
    }
    for code, action in codes.items():
        path = tmp_path / "x.bin"
        path.write_bytes(code.ljust(32, b"\xc3"))
        image = load_image(path, arch="x86-32", base=BASE, entry=BASE)
        image = dataclasses.replace(image, unspecified=((cell, cell + 4),), imports={"thing": cell})
        program = make_program(image, Spec())
        for seed in (0, 1):
            outcome = run_to_end(program, program.machine(InputSource(), seed), 10)
            assert outcome.kind == "unsupported"
            assert outcome.detail.startswith(f"{action} ")
            ended = follow_to_end(program, program.concolic(InputSource(), seed), 10)
            assert (ended.kind, ended.detail) == (outcome.kind, outcome.detail)
    hooked = make_program(image, Spec(input_calls=(InputCall("thing", 8),), entry=BASE))
    assert hooked.undetermined.marker_of(cell) in hooked.hooks


@pytest.mark.parametrize("name", ["thumb.o", "arm.o", "mips32-be-pic.o", "x86-32-pic.o", "riscv64.o", "ppc32-be.o"])
def test_undefined_function_as_input(name: str) -> None:
    """`nondet` of the bundled objects is undefined: unsupported unless the spec makes it an input."""
    image = load_image(IMAGES / name)
    plain = make_program(image, Spec(entry="_start"))
    outcome = run_to_end(plain, plain.machine(InputSource()), 1000)
    assert (outcome.kind, outcome.detail) == ("unsupported", "jump to import nondet")
    source = InputSource([5])
    hooked = make_program(image, Spec(entry="_start", input_calls=(InputCall("nondet"),)))
    assert run_to_end(hooked, hooked.machine(source), 1000).kind == "limit"
    assert source.consumed[0].where == "call of nondet"
