"""Ghost state agrees with the automaton: on runs with the events read off by other means, and in verdicts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mcveto.errors import UsageError
from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.emulator import Machine
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program, load_program
from mcveto.program.spec import load_spec
from mcveto.property.ghost import watch
from mcveto.property.library import find_typestate
from mcveto.property.typestate import Configuration, Label, Typestate
from mcveto.property.typestate_parser import parse_typestate

EXAMPLES = Path(__file__).parents[2] / "examples" / "typestate"
TARGETS = ("x86-32", "ppc32-be", "x86-64", "aarch64")
# What the first argument of a function is read from, by hand.
FIRST = {"x86-32": None, "ppc32-be": "r3", "x86-64": "RDI", "aarch64": "x0"}
RESULT = {"x86-32": "EAX", "ppc32-be": "r3", "x86-64": "RAX", "aarch64": "x0"}

# Deterministic, so that there is one right answer: follows the file opened last.
LAST_FILE = """automaton last-file
event opened(file:32) = return open
event closed(file:32) = call close
event used(file:32) = call read
var file
states none open closed
start none
error used-closed
error closed-twice
none -> open on opened(f) do file := f
open -> open on opened(f) when f >s file do file := f
open -> closed on closed(f) when f == file
closed -> used-closed on used(f) when f == file
closed -> closed-twice on closed(f) when f == file
"""


def example(target: str, name: str) -> Program:
    path = EXAMPLES / target / name
    return load_program(f"{path}.sym.elf", load_spec(f"{path}.yaml"))


def argument(target: str, machine: Machine) -> int:
    register = FIRST[target]
    value = machine.memory.load(machine.read("ESP") + 4, 4) if register is None else machine.read(register)
    return _signed32(value)


def _signed32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def expected_states(target: str, program: Program, automaton: Typestate, value: int) -> list[Configuration]:
    """The configurations along a run of the program without ghost state, events read off by hand."""
    machine = program.machine(InputSource([value], 0))
    names = {address: name for name, address in program.image.symbols.items() if name in ("open", "close", "read")}
    pending: list[int] = []
    (configuration,) = automaton.initial()
    found = [configuration]
    while machine.stopped() is None:
        labels = []
        address = program.decoder.row.code_address(machine.pc)
        if pending and address == pending[-1]:
            pending.pop()
            labels.append(Label("opened", (_signed32(machine.read(RESULT[target])),)))
        name = names.get(address)
        if name == "open":
            pushed = program.decoder.row.pushes_return_address
            link = {"ppc32-be": "LR", "aarch64": "x30"}.get(target, "")
            size = program.decoder.row.address_bytes
            back = (
                machine.memory.load(machine.read(program.decoder.row.stack_pointer), size)
                if pushed
                else machine.read(link)
            )
            pending.append(back)
        elif name is not None:
            labels.append(Label({"close": "closed", "read": "used"}[name], (argument(target, machine),)))
        for label in labels:
            (configuration,) = automaton.successors(configuration, (label,))
            if configuration != found[-1]:
                found.append(configuration)
            if configuration.state in automaton.errors:
                return found
        assert machine.step() is None
    return found


def ghost_states(program: Program, automaton: Typestate, value: int, make: type[Machine]) -> list[Configuration]:
    """The values of the ghost registers along a run of the watched program."""
    watched = watch(program, automaton).program
    machine = watched.machine(InputSource([value], 0), make=make)
    bits = 8 * watched.decoder.row.address_bytes

    def now() -> Configuration:
        file = machine.read("ghost0_file")
        return Configuration(
            automaton.states[machine.read("ghost0_state")], (file - (1 << bits) if file >> (bits - 1) else file,)
        )

    found = [now()]
    outcome = None
    while outcome is None:
        outcome = machine.step()
        if now() != found[-1]:
            found.append(now())
    assert outcome.kind == ("target" if found[-1].state in automaton.errors else "halted")
    return found


@pytest.mark.parametrize("make", [Machine, CompiledMachine])
@pytest.mark.parametrize("target", TARGETS)
def test_ghost_state_follows_the_automaton(target: str, make: type[Machine]) -> None:
    automaton = parse_typestate(LAST_FILE)
    for name in ("handles-WRONG-0", "handles-WRONG-1"):
        program = example(target, name)
        for value in (7, 0):
            expected = expected_states(target, program, automaton, value)
            assert ghost_states(program, automaton, value, make) == expected
            assert len(expected) >= 3


@pytest.mark.parametrize("target", TARGETS)
def test_the_program_is_not_disturbed(target: str) -> None:
    """With an automaton that has no way to an error, runs are the same instruction by instruction."""
    quiet = parse_typestate(LAST_FILE.replace("error used-closed\n", "states used-closed\n"))
    program = example(target, "handles-WRONG-1")
    watched = watch(program, quiet).program
    for seed in range(3):
        value = random.Random(seed).choice([7, 1])
        plain, ghost = (item.machine(InputSource([value], 0)) for item in (program, watched))
        outcomes = [machine.run(10_000) for machine in (plain, ghost)]
        assert outcomes[0] == outcomes[1]
        assert [step.pc for step in plain.trace] == [step.pc for step in ghost.trace]
        for cell in program.decoder.layout.cells:
            assert plain.registers.get(cell.number, 0) == ghost.registers.get(cell.number, 0)


def test_what_is_refused() -> None:
    program = example("x86-32", "driver-MISSING-0")
    lock = find_typestate("lock")
    with pytest.raises(UsageError, match="--event free=call:ADDRESS"):
        watch(program, find_typestate("double-free"), {"alloc": ()})
    with pytest.raises(UsageError, match="has no event 'lok'"):
        watch(program, lock, {"lok": ()})
    head = "automaton a\nevent e(x) = call lock\nvar v\nstates s t\nstart s\nerror bad\n"
    for line, message in [
        ('s -> bad on e do v := "text"', "a:7: 'text' is no machine word"),
        ("s -> t on any", "can only mean to stay"),
        ("s -> bad on syscall no-such", "no system call of that name"),
        ("s -> bad on reach main(x)", "has no arguments"),
        ("s -> bad on return lock(r, q)", "one argument, the value returned"),
        ("s -> bad on e(0x100000000)", "is no machine word"),
        ("s -> bad on call lock", None),
    ]:
        automaton = parse_typestate(head + line + "\n", "a")
        if message is None:
            assert watch(program, automaton).errors
        else:
            with pytest.raises(UsageError, match=message):
                watch(program, automaton)


def test_an_error_outside_code_is_refused() -> None:
    program = example("x86-32", "driver-MISSING-0")
    data = "automaton a\nstates s\nstart s\nerror bad\ns -> bad on reach 0x10\n"
    with pytest.raises(UsageError):
        watch(program, parse_typestate(data))


@pytest.mark.parametrize("make", [Machine, CompiledMachine])
@pytest.mark.parametrize("target", ["x86-32", "ppc32-be"])
def test_texts(target: str, make: type[Machine]) -> None:
    """The password file is known by its name; another name, a longer one and no name at all are not it."""
    automaton = find_typestate("open-before-setresuid")
    for name, value, expected in [
        ("login-SKIP-0", 3, "halted"),
        ("login-SKIP-1", 0, "halted"),
        ("login-SKIP-1", 3, "target"),
    ]:
        watched = watch(example(target, name), automaton).program
        assert watched.machine(InputSource([value], 0), make=make).run(10_000).kind == expected
    for text in ("/etc/passwd2", "/etc/passw", ""):
        other = parse_typestate(
            "automaton a\nevent open(p) = call open\nstates s\nstart s\nerror bad\n" + f's -> bad on open("{text}")\n'
        )
        watched = watch(example(target, "login-SKIP-0"), other).program
        assert watched.machine(InputSource([0], 0), make=make).run(10_000).kind == "halted"


@pytest.mark.parametrize("target", TARGETS)
def test_comparing_a_text_never_faults(target: str) -> None:
    """The argument is a small number: there is nothing to read, and the program goes on as before."""
    automaton = parse_typestate(
        "automaton a\nevent close(p) = call close\nstates s\nstart s\nerror bad\n" + 's -> bad on close("x")\n'
    )
    watched = watch(example(target, "handles-WRONG-0"), automaton).program
    assert watched.machine(InputSource([7], 0)).run(10_000).kind == "halted"


def test_the_end_behind_instructions_that_do_nothing() -> None:
    """Loops are aligned with instructions that have no operations: the function goes on behind them."""
    program = example("x86-32", "server-MISSING-1")
    watched = watch(program, find_typestate("lock"))
    (end,) = [pc for pc, events in watched.events.items() if "end" in events]
    assert end > program.image.symbols["main"]
    machine = watched.program.machine(InputSource([2, 0], 0))
    outcome = machine.run(1_000)
    assert outcome.kind == "target" and watched.errors[outcome.pc][1] == "the program ends with the lock held"


def test_returns_known_by_their_calls() -> None:
    """The function jumps through a table that nothing limits: a run that enters it otherwise is not supported."""
    program = example("x86-32", "rounds-MISSING-1")
    watched = watch(program, find_typestate("lock"))
    main, start = program.image.symbols["main"], program.image.symbols["_start"]
    (end,) = [pc for pc, events in watched.events.items() if "end" in events]
    assert start < end < start + 32
    hooks = watched.program.hooks
    assert any(op.opcode == "TRAP" for op in hooks[main].ops) and any(op.opcode == "TRAP" for op in hooks[end].ops)
    outcome = watched.program.machine(InputSource([1, 3, 5, 0, 0, 0, 0], 0)).run(1_000)
    assert outcome.kind == "target" and watched.errors[outcome.pc][1] == "the program ends with the lock held"
    astray = watched.program.machine(InputSource([0], 0))
    astray.pc = main
    assert astray.run(1_000).kind == "unsupported"
