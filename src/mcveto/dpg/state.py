"""A symbolic state of a run, and predicates seen from it.

Predicates of the graph speak of the state at a node through variables named like registers and one memory variable
`mem`. `SymbolicState.value` says what such a predicate means in terms of the run's inputs: registers are replaced by
their terms, and loads from `mem` are answered by the run's memory with its index of cells instead of its whole chain
of stores.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcveto.logic import terms as t
from mcveto.logic.substitute import rebuild
from mcveto.logic.terms import Term
from mcveto.machine.registers import RegisterLayout
from mcveto.machine.symbolic import initial_register
from mcveto.machine.symbolic_memory import SymbolicMemory


class SymbolicState:
    def __init__(self, layout: RegisterLayout, registers: dict[int, Term], memory: SymbolicMemory, mem: Term) -> None:
        self._layout = layout
        self._registers = registers
        self._memory = memory
        self._mem = mem
        self._done: dict[Term, Term] = {}

    def values(self, terms: Iterable[Term]) -> list[Term]:
        """`value` of many terms, most of which were asked for before."""
        known = self._done.get
        return [known(term) or self.value(term) for term in terms]

    def value(self, term: Term) -> Term:
        """`term` over the state's variables, as a term over the run's inputs."""
        done = self._done
        stack = [term]
        while stack:
            current = stack[-1]
            if current in done:
                stack.pop()
                continue
            if current.op == "var":
                done[current] = self._variable(current)
                stack.pop()
                continue
            # A word in the other byte order (a byte swap the terms recognised) is read from the chain of stores.
            direct = current.op == "load" and current.args[0] is self._mem and self._memory.reads(*current.data)
            if current is self._mem:
                done[current] = self._memory.term
                stack.pop()
                continue
            waiting = [x for x in (current.args[1:] if direct else current.args) if x not in done]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if direct:
                done[current] = self._memory.load(done[current.args[1]], current.data[0])
            else:
                arguments = tuple([done[x] for x in current.args])
                done[current] = current if arguments == current.args else self._rebuilt(current, arguments)
        return done[term]

    def _rebuilt(self, term: Term, arguments: tuple[Term, ...]) -> Term:
        return rebuild(term, arguments)

    def _variable(self, variable: Term) -> Term:
        cell = self._layout.by_name.get(str(variable.data))
        if cell is None:
            return variable  # a fresh value of the step
        value = self._registers.get(cell.number)
        if value is None:
            value = initial_register(self._layout, cell)
        return t.extract(value, variable.width - 1, 0)
