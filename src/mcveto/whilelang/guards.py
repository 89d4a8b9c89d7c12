"""Guards that make every term defined, and memory safety as a contract (lecture §4, (17), Theorem 5, Definition 4).

Before every command that reads Mem(e) stands assert(0 ≤ e < U), before every division by e assert(e ≠ 0); so a proof of
any contract of the rewritten program proves that no run aborts by an undefined term.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcveto.whilelang.rewriting import conjuncts, in_bounds
from mcveto.whilelang.syntax import (
    TRUE,
    Assert,
    Assign,
    Assume,
    Binary,
    Call,
    Command,
    Compare,
    Connective,
    Formula,
    If,
    Input,
    Module,
    Not,
    Num,
    Position,
    Read,
    Seq,
    Skip,
    Store,
    Term,
    Unary,
    While,
    sequence,
)


def guarded(module: Module) -> Module:
    """The module with assert(0 ≤ e < U) before every command that reads Mem(e) (lecture, (17)), and assert(e ≠ 0)
    before every division by e. Guards that always hold or that the assertion just before makes are left out."""
    procedures = tuple(replace(item, body=_guard_command(item.body, module.cells, [])) for item in module.procedures)
    return replace(module, program=_guard_command(module.program, module.cells, []), procedures=procedures)


def term_guards(term: Term, cells: int) -> list[tuple[str, Formula]]:
    """What must hold for the term to be defined, inner terms first."""
    match term:
        case Unary(_, operand):
            return term_guards(operand, cells)
        case Binary(op, left, right):
            found = term_guards(left, cells) + term_guards(right, cells)
            if op in ("/", "%") and not (isinstance(right, Num) and right.value):
                found.append(("division", Compare("≠", right, Num(0))))
            return found
        case Read(_, index):
            found = term_guards(index, cells)
            if not (isinstance(index, Num) and 0 <= index.value < cells):
                found.append(("memory", in_bounds(index)))
            return found
    return []


def formula_guards(formula: Formula, cells: int) -> list[tuple[str, Formula]]:
    match formula:
        case Compare(_, left, right):
            return term_guards(left, cells) + term_guards(right, cells)
        case Not(body):
            return formula_guards(body, cells)
        case Connective(_, p, q):
            return formula_guards(p, cells) + formula_guards(q, cells)
    return []


def _asserts(guards: list[tuple[str, Formula]], at: Position | None, known: list[Formula]) -> list[Command]:
    """Assertions of the guards that are not known, each once."""
    known = list(known)
    result: list[Command] = []
    for why, guard in guards:
        if not all(part in known for part in conjuncts(guard)):
            known += conjuncts(guard)
            result.append(Assert(guard, at, why))
    return result


def _asserted_last(commands: Sequence[Command]) -> list[Formula]:
    """What the assertions at the end of a sequence establish."""
    known: list[Formula] = []
    for command in reversed(commands):
        if not isinstance(command, Assert):
            break
        known += conjuncts(command.condition)
    return known


def _guard_command(command: Command, cells: int, known: list[Formula]) -> Command:
    guards: list[tuple[str, Formula]] = []
    match command:
        case Seq(commands):
            result: list[Command] = []
            for number, item in enumerate(commands):
                before = _asserted_last(commands[:number]) if number else known
                result.append(_guard_command(item, cells, before))
            return sequence(result)
        case Assign(_, value):
            guards = term_guards(value, cells)
        case Store(index, value):
            guards = term_guards(index, cells) + term_guards(value, cells)
        case Call(_, _, arguments):
            guards = [guard for item in arguments for guard in term_guards(item, cells)]
        case Assert(condition) | Assume(condition):
            guards = formula_guards(condition, cells)
        case If(condition, then, otherwise):
            guards = formula_guards(condition, cells)
            other = None if otherwise is None else _guard_command(otherwise, cells, [])
            command = replace(command, then=_guard_command(then, cells, []), otherwise=other)
        case While(condition, body, _):
            guards = formula_guards(condition, cells)
            inner = _guard_command(body, cells, [])
            last = _asserted_last(inner.commands if isinstance(inner, Seq) else (inner,))
            command = replace(command, body=sequence([inner, *_asserts(guards, command.at, last)]))
        case Skip() | Input():
            pass
    return sequence([*_asserts(guards, command.at, known), command])


def memory_safety(module: Module) -> Module:
    """A module whose contract is that no run from the precondition aborts by a pointer (lecture, Definition 4).

    What else could abort, a false assertion or a division by zero, ends the run without complaint.
    """
    guarded_module = guarded(module)
    procedures = tuple(replace(item, body=_only_memory(item.body)) for item in guarded_module.procedures)
    return replace(guarded_module, program=_only_memory(guarded_module.program), post=TRUE, procedures=procedures)


def _only_memory(command: Command) -> Command:
    match command:
        case Seq(commands):
            return sequence([_only_memory(item) for item in commands])
        case Assert(condition) if command.why != "memory":
            return Assume(condition, command.at)
        case If(_, then, otherwise):
            other = None if otherwise is None else _only_memory(otherwise)
            return replace(command, then=_only_memory(then), otherwise=other)
        case While(_, body, _):
            return replace(command, body=_only_memory(body))
    return command
