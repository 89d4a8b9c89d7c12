"""Guards of memory safety and faults: they agree with a plain monitor run by run, and with rules told by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mcveto.check.counterexample import Counterexample
from mcveto.check.safety_monitor import SafetyViolation, find_violation
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.emulator import Machine
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import PropertySpec, Spec, load_spec
from mcveto.property.attach import Attached, attach
from mcveto.property.safety.guards import TOO_DEEP
from mcveto.search import Question, search
from mcveto.verdict import Verdict, VerdictInput

EXAMPLES = Path(__file__).parents[2] / "examples"
MEMORY = EXAMPLES / "memory"
BOTH = (PropertySpec("memory-safety"), PropertySpec("no-fault"))
STEPS = 20_000
INTERESTING = (0, 1, 3, 6, 7, 8, 12, 15, 16, 17, 20, 42, 64, 0x80000000, 0xFFFFFFFF)


def with_properties(path: Path) -> Program:
    from dataclasses import replace

    spec = load_spec(str(path))
    return load_program(None, replace(spec, properties=BOTH))


def agree(program: Program, attached: Attached, values: list[int], make: type[Machine] = Machine) -> str:
    """What the run with these inputs violates ("" if nothing), if guards and monitor say the same."""
    assert attached.guarded is not None
    outcome = attached.program.machine(InputSource(values), make=make).run(STEPS)
    assert TOO_DEEP not in outcome.detail
    example = Counterexample("", tuple(VerdictInput(value, 32, "input") for value in values))
    found = find_violation(program, example, ("memory-safety", "no-fault"), max_steps=STEPS)
    is_violated = outcome.kind == "target" and outcome.pc in attached.guarded.errors
    assert is_violated == isinstance(found, SafetyViolation), (values, outcome, found)
    if not isinstance(found, SafetyViolation):
        assert outcome.kind in ("halted", "limit", "exited")
        return ""
    assert (outcome.pc == min(attached.guarded.errors)) == (found.about == "memory-safety")
    return found.about


def runs(path: Path, count: int) -> set[str]:
    generator = random.Random(str(path.name))
    program = with_properties(path)
    attached = attach(program)
    found = set()
    for _ in range(count):
        values = [generator.choice(INTERESTING) for _ in range(24)]
        found.add(agree(program, attached, values))
    return found - {""}


FAST = ("double-free-bug", "over-read-bug", "stack-smash-bug", "strncpy-safe")
ALL = sorted(MEMORY.rglob("*.yaml"))


@pytest.mark.parametrize("name", FAST)
def test_guards_and_monitor_agree(name: str) -> None:
    spec = load_spec(str(MEMORY / "x86-32" / f"{name}.yaml"))
    found = runs(MEMORY / "x86-32" / f"{name}.yaml", 6)
    assert found <= ({spec.properties[0].name} if spec.expected == "violated" else set())


@pytest.mark.slow
@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_guards_and_monitor_agree_elsewhere(path: Path) -> None:
    found = runs(path, 12)
    assert bool(found) <= (load_spec(str(path)).expected == "violated")


CHECKSUMS = ("aarch64-O2", "arm-O2", "arm-thumb-O2", "mips32-be-O2", "ppc32-be-O0", "x86-64-O0")


@pytest.mark.parametrize("name", ["riscv32-O2", *(pytest.param(n, marks=pytest.mark.slow) for n in CHECKSUMS)])
def test_compiled_code_is_not_blamed(name: str) -> None:
    """One C program with calls, frames and arrays, as compilers make it for every instruction set."""
    program = with_properties(EXAMPLES / "machine" / "checksum" / f"{name}.yaml")
    attached: Attached | None = attach(program)
    while attached is not None:
        outcome = attached.program.machine(InputSource(()), make=CompiledMachine).run(2_000_000)
        attached = attached.wider(outcome.detail)
    assert outcome.kind == "halted", outcome


def blob(tmp_path: Path, code: str, arch: str, properties: tuple[str, ...]) -> Program:
    path = tmp_path / "code.bin"
    path.write_bytes(bytes.fromhex(code))
    spec = Spec(arch=arch, base=0x10000, properties=tuple(PropertySpec(name) for name in properties))
    return load_program(str(path), spec)


def verdict(program: Program, engine: str = "symex") -> Verdict:
    return search(lambda: program, Question(engine=engine, timeout=120)).verdict


RULES = {
    "a word below the stack pointer": ("x86-32", "8b4424fc c3", "below the stack pointer"),
    "the red zone of x86-64": ("x86-64", "488b442480 c3", ""),
    "below the red zone": ("x86-64", "488b842478ffffff c3", "below the stack pointer"),
    "an argument on the stack": ("x86-32", "8b442404 c3", ""),
    "room on the stack": ("x86-32", "83ec20 890424 83c420 c3", ""),
    "a thunk that reads its return address": ("x86-32", "e801000000 c3 8b1c24 c3", ""),
    "one byte of the return address": ("x86-32", "8a442401 c3", "return address"),
    "the caller's return address": ("x86-32", "e801000000 c3 83ec04 8b442408 83c404 c3", "return address"),
    "the return address overwritten": ("x86-32", "c7042400000000 c3", "return address"),
    "the same value written again": ("x86-32", "8b0424 890424 c3", ""),
    "a function that aligns its frame pushes its return address again": (
        "x86-32",
        "8d4c2404 83e4f0 ff71fc 55 89e5 51 59 5d 8d61fc c3",
        "",
    ),
    "and overwrites it then": (
        "x86-32",
        "8d4c2404 83e4f0 ff71fc 55 89e5 51 c641fc00 59 5d 8d61fc c3",
        "return address",
    ),
    "a saved register is restored": ("x86-32", "e801000000 c3 53 55 31db 5d 5b c3", ""),
    "a saved register is restored by the frame pointer": ("x86-32", "e801000000 c3 55 89e5 53 8b5dfc c9 c3", ""),
    "a function that is jumped to saves it again": ("x86-32", "e801000000 c3 55 5d e900000000 55 89e5 5d c3", ""),
    "one byte of the saved frame pointer overwritten": (
        "x86-32",
        "e801000000 c3 55 89e5 c6450200 5d c3",
        "saved registers",
    ),
    "the saved register of a caller read": (
        "x86-64",
        "e801000000 c3 53 e802000000 5b c3 8a442408 c3",
        "saved registers",
    ),
    "PowerPC saves a register": ("ppc32-be", "9421fff0 93e1000c 83e1000c 38210010 4e800020", ""),
    "PowerPC overwrites a saved register": (
        "ppc32-be",
        "9421fff0 93e1000c 9881000e 83e1000c 38210010 4e800020",
        "saved registers",
    ),
    "a null pointer": ("x86-32", "31c0 8b4004 c3", "null"),
    "nothing there": ("x86-32", "a100000050 c3", "unmapped"),
    "PowerPC saves the link register": (
        "ppc32-be",
        "9421fff0 7c0802a6 90010014 80010014 7c0803a6 38210010 4e800020",
        "",
    ),
    "PowerPC overwrites it": ("ppc32-be", "9421fff0 7c0802a6 90010014 98810015 38210010 4e800020", "return address"),
    "PowerPC below its frame": ("ppc32-be", "9081fffc 4e800020", "below the stack pointer"),
    "ARM saves the link register": ("arm", "10402de9 1080bde8", ""),
    "ARM overwrites it": ("arm", "10402de9 0410cde5 1080bde8", "return address"),
    "AArch64 saves a pair": ("aarch64", "fd7bbfa9 fd7bc1a8 c0035fd6", ""),
    "AArch64 overwrites the second": ("aarch64", "fd7bbfa9 e8230039 fd7bc1a8 c0035fd6", "return address"),
    "RISC-V overwrites it": ("riscv32", "130101ff 23261100 a306a100 8320c100 13010101 67800000", "return address"),
    "MIPS overwrites it": ("mips32-be", "27bdffe0 afbf001c a3a4001d 8fbf001c 03e00008 27bd0020", "return address"),
    "MIPS saves it": ("mips32-be", "27bdffe0 afbf001c 8fbf001c 03e00008 27bd0020", ""),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_memory_safety(name: str, tmp_path: Path) -> None:
    arch, code, region = RULES[name]
    found = verdict(blob(tmp_path, code, arch, ("memory-safety",)))
    if not region:
        assert found.kind == "proved", found.reason
        assert found.support["obligations"], found.warnings
        return
    assert (found.kind, found.about) == ("violated", "memory-safety"), found.reason
    touched = found.violation["region"]
    assert isinstance(touched, dict) and touched["kind"] == region
    assert found.confirmed_by[:2] == ("emulator", "monitor")


# push [length]; push text; call copy; add esp, 8; mov byte [eax + place], 0; push eax; call free; pop ecx; ret
COPIES = {
    ("strdup", 9, 3): "",
    ("strdup", 9, 4): "heap block",
    ("strndup", 2, 2): "",
    ("strndup", 2, 3): "heap block",
    ("strndup", 9, 3): "",
}


@pytest.mark.parametrize(
    ("name", "length", "place", "text"),
    [*((*case, "61626300") for case in COPIES), ("strdup", 9, 3, "616263"), ("strndup", 2, 2, "616263")],
)
def test_copies_of_text_are_heap_blocks(name: str, length: int, place: int, text: str, tmp_path: Path) -> None:
    """Their size is that of the text; a text without an end is read beyond what is mapped."""
    base, copy, free = 0x10000, 0x10040, 0x10050
    at = base + 4096 - len(text) // 2
    code = bytes([0x6A, length, 0x68, *at.to_bytes(4, "little"), 0xE8, *(copy - base - 12).to_bytes(4, "little")])
    code += bytes.fromhex(f"83c408 c640{place:02x}00 50 e8") + (free - base - 25).to_bytes(4, "little") + b"\x59\xc3"
    path = tmp_path / "code.bin"
    path.write_bytes(code.ljust(4096 - len(text) // 2, b"\xcc") + bytes.fromhex(text))
    models = ((copy, name), (free, "free"))
    spec = Spec(arch="x86-32", base=base, models=models, properties=(PropertySpec("memory-safety"),))
    found = verdict(load_program(str(path), spec))
    has_end = len(text) == 8 or (name == "strndup" and length <= 3)
    region = COPIES[name, length, place] if has_end else "unmapped"
    if not region:
        assert found.kind == "proved", found.reason
        return
    assert (found.kind, found.about) == ("violated", "memory-safety"), found.reason
    touched = found.violation["region"]
    assert isinstance(touched, dict) and touched["kind"] == region


FAULTS = {
    "division by what may be zero": ("x86-32", "31d2 f7f1 c3", "divide-error"),
    "a quotient that does not fit": ("x86-32", "ba01000000 b901000000 f7f1 c3", "divide-error"),
    "division by one": ("x86-32", "31d2 b901000000 f7f1 c3", ""),
    "division by what may be zero on PowerPC": ("ppc32-be", "7c6323d6 4e800020", "divide-error"),
    "division of what has no sign by zero on PowerPC": ("ppc32-be", "7c632396 4e800020", "divide-error"),
    "a quotient that does not fit on PowerPC": ("ppc32-be", "3880ffff 7c6323d6 4e800020", "divide-error"),
    "division by three on PowerPC": ("ppc32-be", "38800003 7c6323d6 4e800020", ""),
    "division by what may be zero on MIPS": ("mips32-be", "0085001a 03e00008 00000000", "divide-error"),
    "division with a result for zero": ("arm", "10f111e7 1eff2fe1", ""),
    "an undefined instruction": ("x86-32", "0f0b c3", "undefined-instruction"),
    "a jump to anywhere": ("x86-32", "ffe0 c3", "unmapped-execute"),
    "code that ends": ("x86-32", "90", "unmapped-execute"),
    "a direct jump to nowhere": ("x86-32", "e900000050", "unmapped-execute"),
    "a trap of MIPS": ("mips32-be", "20840001 03e00008 00000000", "overflow-trap"),
    "nothing wrong": ("ppc32-be", "4e800020", ""),
}


WITH_DPG = ("division by what may be zero", "a jump to anywhere", "division by one")


@pytest.mark.parametrize(("name", "engine"), [*((n, "symex") for n in FAULTS), *((n, "dpg") for n in WITH_DPG)])
def test_faults(name: str, engine: str, tmp_path: Path) -> None:
    arch, code, fault = FAULTS[name]
    found = verdict(blob(tmp_path, code, arch, ("no-fault",)), engine)
    if not fault:
        assert found.kind == "proved", found.reason
        return
    assert (found.kind, found.about) == ("violated", "no-fault"), found.reason
    assert found.violation["fault"] == fault
