"""Syntactic operations on terms, formulas and programs: negation, substitution, names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mcveto.whilelang.syntax import (
    FALSE,
    MEM,
    TRUE,
    Assert,
    Assign,
    Assume,
    Binary,
    Box,
    Call,
    Command,
    Compare,
    Connective,
    Formula,
    If,
    Input,
    Limit,
    Memory,
    MemVar,
    Module,
    Not,
    Num,
    Read,
    Seq,
    Store,
    Term,
    Truth,
    Unary,
    Update,
    Var,
    While,
)

_OPPOSITE = {"=": "≠", "≠": "=", "<": "≥", "≥": "<", ">": "≤", "≤": ">"}
_DUAL = {"∧": "∨", "∨": "∧"}


def negate(formula: Formula) -> Formula:
    """¬P with the negation moved inwards: ¬(y > 0) is y ≤ 0."""
    match formula:
        case Truth(value):
            return Truth(not value)
        case Compare(op, left, right):
            return Compare(_OPPOSITE[op], left, right)
        case Not(body):
            return body
        case Connective("∧" | "∨" as op, left, right):
            return Connective(_DUAL[op], negate(left), negate(right))
        case Connective("→", left, right):
            return Connective("∧", left, negate(right))
    return Not(formula)


def both(left: Formula, right: Formula) -> Formula:
    """left ∧ right; a part that is ⊤ is left out."""
    if left == TRUE:
        return right
    return left if right == TRUE else Connective("∧", left, right, lazy=True)


def implication(left: Formula, right: Formula) -> Formula:
    """left → right, or ⊤ where right is."""
    if right == TRUE or left == FALSE:
        return TRUE
    return right if left == TRUE else Connective("→", left, right, lazy=True)


def conjuncts(formula: Formula) -> list[Formula]:
    if isinstance(formula, Connective) and formula.op == "∧":
        return [*conjuncts(formula.left), *conjuncts(formula.right)]
    return [formula]


def in_bounds(index: Term) -> Formula:
    """0 ≤ e < U."""
    return Connective("∧", Compare("≤", Num(0), index), Compare("<", index, Limit()))


# Substitution


def instantiate_term(term: Term, values: Mapping[str, Term], memory: Memory) -> Term:
    """The term with variables replaced by terms and Mem by a memory, all at once."""
    match term:
        case Var(name):
            return values.get(name, term)
        case Unary(op, operand):
            return Unary(op, instantiate_term(operand, values, memory))
        case Binary(op, left, right):
            return Binary(op, instantiate_term(left, values, memory), instantiate_term(right, values, memory))
        case Read(inner, index):
            return Read(_instantiate_memory(inner, values, memory), instantiate_term(index, values, memory))
    return term


def _instantiate_memory(inner: Memory, values: Mapping[str, Term], memory: Memory) -> Memory:
    match inner:
        case MemVar():
            return memory if inner == MEM else inner
        case Update(before, index, value):
            return Update(
                _instantiate_memory(before, values, memory),
                instantiate_term(index, values, memory),
                instantiate_term(value, values, memory),
            )


def instantiate(formula: Formula, values: Mapping[str, Term], memory: Memory) -> Formula:
    """The formula after a substitution. In a program under a modality, variables can only be renamed."""
    match formula:
        case Compare(op, left, right):
            return Compare(op, instantiate_term(left, values, memory), instantiate_term(right, values, memory))
        case Not(body):
            return Not(instantiate(body, values, memory))
        case Connective(op, p, q):
            lazy = formula.lazy
            return Connective(op, instantiate(p, values, memory), instantiate(q, values, memory), lazy)
        case Box(program, body):
            return Box(_instantiate_command(program, values, memory), instantiate(body, values, memory))
    return formula


def _instantiate_command(command: Command, values: Mapping[str, Term], memory: Memory) -> Command:
    def term(item: Term) -> Term:
        return instantiate_term(item, values, memory)

    def formula(item: Formula) -> Formula:
        return instantiate(item, values, memory)

    def name(item: str) -> str:
        found = values.get(item, Var(item))
        assert isinstance(found, Var)
        return found.name

    def inside(item: Command) -> Command:
        return _instantiate_command(item, values, memory)

    match command:
        case Seq(commands):
            return Seq(tuple(inside(item) for item in commands))
        case Assign(target, value):
            return replace(command, target=name(target), value=term(value))
        case Input(target):
            return replace(command, target=name(target))
        case Store(index, value):
            return replace(command, index=term(index), value=term(value))
        case Call(target, _, arguments):
            shown = None if target is None else name(target)
            return replace(command, target=shown, arguments=tuple(term(item) for item in arguments))
        case Assert(condition) | Assume(condition):
            return replace(command, condition=formula(condition))
        case If(condition, then, otherwise):
            other = None if otherwise is None else inside(otherwise)
            return replace(command, condition=formula(condition), then=inside(then), otherwise=other)
        case While(condition, body, invariant):
            kept = None if invariant is None else formula(invariant)
            return replace(command, condition=formula(condition), body=inside(body), invariant=kept)
    return command


# Names


def term_names(term: Term) -> Iterator[str]:
    match term:
        case Var(name):
            yield name
        case Unary(_, operand):
            yield from term_names(operand)
        case Binary(_, left, right):
            yield from term_names(left)
            yield from term_names(right)
        case Read(memory, index):
            yield from term_names(index)
            while isinstance(memory, Update):
                yield from term_names(memory.index)
                yield from term_names(memory.value)
                memory = memory.memory


def formula_names(formula: Formula) -> Iterator[str]:
    match formula:
        case Compare(_, left, right):
            yield from term_names(left)
            yield from term_names(right)
        case Not(body):
            yield from formula_names(body)
        case Connective(_, p, q):
            yield from formula_names(p)
            yield from formula_names(q)
        case Box(program, body):
            yield from command_names(program)
            yield from formula_names(body)


def command_names(command: Command) -> Iterator[str]:
    """Every variable a program mentions."""
    match command:
        case Seq(commands):
            for item in commands:
                yield from command_names(item)
        case Assign(target, value):
            yield target
            yield from term_names(value)
        case Input(target):
            yield target
        case Store(index, value):
            yield from term_names(index)
            yield from term_names(value)
        case Call(target, _, arguments):
            if target is not None:
                yield target
            for argument in arguments:
                yield from term_names(argument)
        case Assert(condition) | Assume(condition):
            yield from formula_names(condition)
        case If(condition, then, otherwise):
            yield from formula_names(condition)
            yield from command_names(then)
            if otherwise is not None:
                yield from command_names(otherwise)
        case While(condition, body, invariant):
            yield from formula_names(condition)
            yield from command_names(body)
            if invariant is not None:
                yield from formula_names(invariant)


def changed(command: Command) -> set[str]:
    """The variables a program may assign to."""
    match command:
        case Seq(commands):
            return set().union(*map(changed, commands))
        case Assign(target, _) | Input(target):
            return {target}
        case Call(str(target), _, _):
            return {target}
        case If(_, then, otherwise):
            return changed(then) | (changed(otherwise) if otherwise is not None else set())
        case While(_, body, _):
            return changed(body)
    return set()


def changes_memory(command: Command) -> bool:
    match command:
        case Seq(commands):
            return any(map(changes_memory, commands))
        case Store() | Call():
            return True
        case If(_, then, otherwise):
            return changes_memory(then) or (otherwise is not None and changes_memory(otherwise))
        case While(_, body, _):
            return changes_memory(body)
    return False


def uses_memory(module: Module) -> bool:
    """Whether anything in the module reads or writes memory."""
    formulas = [module.pre, module.post, Box(module.program, TRUE)]
    formulas += [Box(procedure.body, TRUE) for procedure in module.procedures]
    marker = Var(" memory")
    # A read shows as a change when the memory is replaced by another one.
    return any(
        instantiate(item, {}, Update(MEM, marker, marker)) != item or (isinstance(item, Box) and _stores(item.program))
        for item in formulas
    )


def _stores(command: Command) -> bool:
    match command:
        case Seq(commands):
            return any(map(_stores, commands))
        case Store():
            return True
        case If(_, then, otherwise):
            return _stores(then) or (otherwise is not None and _stores(otherwise))
        case While(_, body, _):
            return _stores(body)
    return False


def module_variables(module: Module) -> list[str]:
    """The variables of the main program and its contract, sorted."""
    names = {*command_names(module.program), *formula_names(module.pre), *formula_names(module.post)}
    return sorted(names)
