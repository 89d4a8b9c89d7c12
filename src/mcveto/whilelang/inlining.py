"""A call as the body of its procedure, every variable under a name of its own: what rule [call] unfolds to."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from mcveto.whilelang.rewriting import command_names, formula_names, instantiate
from mcveto.whilelang.syntax import (
    MEM,
    TRUE,
    Assign,
    Box,
    Call,
    Command,
    If,
    Module,
    Num,
    Seq,
    Term,
    Var,
    While,
    sequence,
)


def new_name(base: str, taken: AbstractSet[str]) -> str:
    """base_1, or the next index that is free."""
    number = 1
    while f"{base}_{number}" in taken:
        number += 1
    return f"{base}_{number}"


class Inliner:
    """Unfolds calls; `names` are all the names in use, its own included. `constants` keep their names everywhere."""

    def __init__(self, module: Module, constants: AbstractSet[str] = frozenset()) -> None:
        self._module = module
        self._constants = constants
        self.names: set[str] = {
            *formula_names(module.pre),
            *formula_names(module.post),
            *command_names(module.program),
        }
        for procedure in module.procedures:
            self.names |= {*procedure.parameters, *command_names(procedure.body), procedure.result or ""}

    def inlined(self, call: Call) -> Command:
        """Parameters are assigned, other locals start as 0, the body runs, the result is assigned."""
        procedure = self._module.procedure(call.procedure)
        result = {procedure.result} if procedure.result is not None else set()
        locals_ = {*command_names(procedure.body), *procedure.parameters, *result} - self._constants
        renaming: dict[str, str] = {}
        for name in sorted(locals_):
            renaming[name] = new_name(f"{procedure.name}_{name}", self.names)
            self.names.add(renaming[name])
        commands: list[Command] = [
            Assign(renaming[parameter], argument, call.at)
            for parameter, argument in zip(procedure.parameters, call.arguments, strict=True)
        ]
        others = sorted(locals_ - set(procedure.parameters))
        commands += [Assign(renaming[name], Num(0), call.at) for name in others]
        values: dict[str, Term] = {name: Var(new) for name, new in renaming.items()}
        body = instantiate(Box(_within(procedure.body, (*call.within, procedure.name)), TRUE), values, MEM)
        assert isinstance(body, Box)
        commands.append(body.program)
        if call.target is not None and procedure.result is not None:
            commands.append(Assign(call.target, Var(renaming[procedure.result]), call.at))
        return sequence(commands)


def _within(command: Command, procedures: tuple[str, ...]) -> Command:
    """The command with its calls marked as part of the bodies of `procedures`."""
    match command:
        case Seq(commands):
            return Seq(tuple(_within(item, procedures) for item in commands))
        case Call():
            return replace(command, within=procedures)
        case If(_, then, otherwise):
            other = None if otherwise is None else _within(otherwise, procedures)
            return replace(command, then=_within(then, procedures), otherwise=other)
        case While(_, body, _):
            return replace(command, body=_within(body, procedures))
    return command
