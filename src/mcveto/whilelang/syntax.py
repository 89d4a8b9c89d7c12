"""Terms, formulas and programs of the While language (lecture notes on automated checkers and memory safety, §1, §4).

    e ::= x | c | U | e ⊙ e | -e | ~e | Mem(e)            ⊙ one of + - * / % & | ^ << >>
    P ::= true | false | e ⋈ e | ¬P | P ∧ P | P ∨ P | P → P | P ↔ P | [α]P
    α ::= x := e | Mem(e) := e | x := input() | x := f(e,…) | f(e,…) | assert(P) | assume(P) | skip
        | if (P) α else β | while (P) α | α; β

Beyond the lecture: subtraction, division and the operators of machine integers; `assume`, `input`, procedures; an
optional loop invariant. Memories are terms of their own, so that a read after an update can be written: Mem{e ↦ ẽ}(e').
A sequence holds all its commands and is never nested. Positions in the source do not take part in comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Position(NamedTuple):
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Num:
    value: int


@dataclass(frozen=True, slots=True)
class Var:
    name: str


@dataclass(frozen=True, slots=True)
class Limit:
    """U, the number of memory cells."""


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    operand: Term


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class MemVar:
    """The memory; other names than Mem stand for one nothing is known about (after a loop cut by its invariant)."""

    name: str = "Mem"


@dataclass(frozen=True, slots=True)
class Update:
    """The memory Mem{index ↦ value}."""

    memory: Memory
    index: Term
    value: Term


@dataclass(frozen=True, slots=True)
class Read:
    memory: Memory
    index: Term


Memory = MemVar | Update
Term = Num | Var | Limit | Unary | Binary | Read
MEM = MemVar()


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


@dataclass(frozen=True, slots=True)
class Compare:
    op: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Not:
    body: Formula


@dataclass(frozen=True, slots=True)
class Connective:
    """op is one of ∧ ∨ → ↔.

    `lazy` marks the ∧ and → that an axiom introduces. They join judgements, not parts of one formula: what is undefined
    on one side of them does not make the whole undefined.
    """

    op: str
    left: Formula
    right: Formula
    lazy: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Box:
    """[program] body: after every run of the program that ends, body holds, and no run aborts."""

    program: Command
    body: Formula


Formula = Truth | Compare | Not | Connective | Box
TRUE = Truth(True)
FALSE = Truth(False)


@dataclass(frozen=True, slots=True)
class Skip:
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    target: str
    value: Term
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Store:
    index: Term
    value: Term
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Input:
    target: str
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    target: str | None
    procedure: str
    arguments: tuple[Term, ...]
    at: Position | None = field(default=None, compare=False)
    within: tuple[str, ...] = field(default=(), compare=False)
    """The procedures whose bodies were unfolded around it, in a derivation."""


@dataclass(frozen=True, slots=True)
class Assert:
    """`why` tells what the assertion is for: written by the user, a guard (bounds, division), an unwinding."""

    condition: Formula
    at: Position | None = field(default=None, compare=False)
    why: str = field(default="assertion", compare=False)


@dataclass(frozen=True, slots=True)
class Assume:
    condition: Formula
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    condition: Formula
    then: Command
    otherwise: Command | None = None
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """`fuel` is how often it may still be unfolded; None in a program as written."""

    condition: Formula
    body: Command
    invariant: Formula | None = None
    at: Position | None = field(default=None, compare=False)
    fuel: int | None = None


@dataclass(frozen=True, slots=True)
class Seq:
    """At least two commands, none of them a sequence: use `sequence` to build one."""

    commands: tuple[Command, ...]


Command = Skip | Assign | Store | Input | Call | Assert | Assume | If | While | Seq


@dataclass(frozen=True, slots=True)
class Procedure:
    """Every variable of the body is local and starts as 0; the memory is shared with the caller."""

    name: str
    parameters: tuple[str, ...]
    result: str | None
    body: Command
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Module:
    """A file: pre → [program] post, in a number theory, with a memory of `cells` cells."""

    program: Command
    pre: Formula = TRUE
    post: Formula = TRUE
    theory: str = "Z"
    cells: int = 16
    procedures: tuple[Procedure, ...] = ()

    def procedure(self, name: str) -> Procedure:
        return next(item for item in self.procedures if item.name == name)


def sequence(commands: list[Command]) -> Command:
    """The commands in order; sequences among them are flattened, `skip` is kept only where it stands alone."""
    flat: list[Command] = []
    for command in commands:
        flat.extend(command.commands if isinstance(command, Seq) else (command,))
    flat = [command for command in flat if not isinstance(command, Skip)]
    if not flat:
        return Skip()
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))
