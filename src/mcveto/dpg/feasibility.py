"""The basic step of directed test generation: can the run of a witness be changed so that it takes a given step?

The question is the path constraint up to the witness and the literals of the step, both over the run's inputs
(TR1669 Alg. 1, lines 8-9). Conjuncts of the path that share no variable, directly or through others, with the literals
are left out: the witness's own values satisfy them.

Bytes of the image are not part of the question; those that the solver got wrong are added (`image_facts`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mcveto.dpg.graph import Witness
from mcveto.dpg.reads_behind_writes import ReadsBehindWrites
from mcveto.dpg.runs import Choices
from mcveto.late_methods import dataclass
from mcveto.logic import terms as t
from mcveto.logic.solver import MemoryModel, Solver, make_solver
from mcveto.logic.terms import Term, free_variables
from mcveto.program.image_facts import ImageFacts
from mcveto.program.program import Program

MAX_FACT_ROUNDS = 200
MAX_LITERALS = 24
RENEW_AFTER = 300
# Words read and writes before them: a solver needs seconds for as many, whatever its time limit is.
MAX_PAIRS = 50_000


@dataclass(frozen=True, slots=True)
class Feasible:
    choices: Choices


@dataclass(frozen=True, slots=True)
class Infeasible:
    core: tuple[Term, ...]
    """Literals (as given, over the state) that no run along the witness's path satisfies."""


@dataclass(frozen=True, slots=True)
class Undecided:
    why: str


Answer = Feasible | Infeasible | Undecided


class Feasibility:
    def __init__(self, program: Program, solver: Solver | None = None) -> None:
        self._program = program
        self._given = solver
        self._made = make_solver("auto") if solver is None else solver
        self._asked_of_it = 0
        self._image = ImageFacts(program)
        self._variables: dict[Term, tuple[Term, ...]] = {}
        self._memory_reads = ReadsBehindWrites()
        self.queries = 0

    @property
    def solver(self) -> Solver:
        """The solver to ask next. An incremental solver gets slower with all it was ever asked, so a new one is made
        now and then."""
        self._asked_of_it += 1
        if self._given is None and self._asked_of_it > RENEW_AFTER:
            self._made, self._asked_of_it = make_solver("auto"), 0
        return self._made

    def ask(self, witness: Witness, literals: Sequence[Term], timeout: float) -> Answer:
        """Whether some run along the witness's path satisfies the literals at the witness."""
        state = witness.visit.state
        assert state is not None
        values_here = state.values(literals)
        if t.FALSE in values_here:
            return Infeasible((literals[values_here.index(t.FALSE)],))
        seen_from_inputs = {
            literal: value for literal, value in zip(literals, values_here, strict=True) if value is not t.TRUE
        }
        wanted = list(seen_from_inputs.values())
        path = self._relevant(witness.run.path[: witness.visit.path_length], wanted)
        if self._memory_reads.pairs([*path, *wanted]) > MAX_PAIRS:
            return Undecided("it reads too many words behind too many writes")
        for _ in range(MAX_FACT_ROUNDS):
            self.queries += 1
            solver = self.solver
            solver.push()
            try:
                for term in (*path, *self._image.terms):
                    solver.add(term)
                answer = solver.check(tuple(dict.fromkeys(wanted)), timeout)
                if answer == "unsat":
                    core = set(solver.core())
                    return Infeasible(tuple(lit for lit, value in seen_from_inputs.items() if value in core))
                if answer == "unknown":
                    return Undecided("the solver ran out of time")
                values = {
                    variable: solver.value(variable) for variable in free_variables([*path, *wanted]) if variable.width
                }
                guessed = (
                    solver.model_memory(self._image.memory)
                    if self._mentions_memory([*path, *wanted])
                    else MemoryModel(0)
                )
            finally:
                solver.pop()
            wrong, used = self._image.compare([*path, *wanted], values, guessed)
            if not wrong:
                made_up = self._program.undetermined.byte
                if any(made_up(address) not in (None, byte) for address, byte in used.items()):
                    return Undecided("it depends on bytes that the file does not determine")
                return Feasible(self._choices(witness, values, used))
            self._image.learn(wrong)
        return Undecided("too many bytes of the image had to be looked up")

    def is_certain(self, witness: Witness, condition: Term, timeout: float) -> bool:
        """Whether every run along the witness's path satisfies the condition at the witness."""
        return isinstance(self.ask(witness, (t.bnot(condition),), timeout), Infeasible)

    def excluded(
        self, predicate: Sequence[Term], literals: Sequence[Term], core: Sequence[Term], timeout: float
    ) -> bool:
        """Whether no state at all satisfies a node's predicate and the literals of a step.

        Of long predicates only the newest literals and the core are looked at, so that the question does not grow with
        the number of splits: then the answer may be no although it should be yes.
        """
        self.queries += 1
        step = literals if len(literals) <= MAX_LITERALS else core
        solver = self.solver
        solver.push()
        try:
            return solver.check((*predicate[-MAX_LITERALS:], *step), timeout) == "unsat"
        finally:
            solver.pop()

    def _choices(self, witness: Witness, values: dict[Term, int], used: dict[int, int]) -> Choices:
        """The witness's own choices up to its visit, changed to what the model says."""
        run = witness.run
        old = run.choices
        fresh = {
            number: value
            for number, (_, _, value) in enumerate(run.execution.fresh_values[: witness.visit.fresh_count])
        }
        registers, memory = dict(old.registers), dict(old.memory)
        layout = self._program.decoder.layout
        for variable, value in values.items():
            name = str(variable.data)
            if name in layout.by_name:
                registers[name] = value
            elif "!" in name:
                fresh[witness.visit.fresh_count + int(name.partition("!")[2])] = value
            else:
                fresh[run.execution.fresh_positions[variable]] = value
        for address, byte in sorted(used.items()):
            if self._program.space.region_at(address):
                memory[address] = byte
        number = witness.visit.number
        return Choices(fresh, registers, memory, old.seed, frozenset({number, number + 1}))

    def _relevant(self, path: Sequence[Term], wanted: Sequence[Term]) -> list[Term]:
        """The conjuncts of the path connected with the literals through shared variables, in order."""
        reached: set[Term] = {variable for term in wanted for variable in self._variables_of(term)}
        remaining = list(dict.fromkeys(path))
        chosen: set[Term] = set()
        changed = True
        while changed:
            changed = False
            rest = []
            for term in remaining:
                variables = self._variables_of(term)
                if reached.isdisjoint(variables):
                    rest.append(term)
                else:
                    chosen.add(term)
                    if not reached.issuperset(variables):
                        reached.update(variables)
                        changed = True
            remaining = rest
        return [term for term in dict.fromkeys(path) if term in chosen]

    def _variables_of(self, term: Term) -> tuple[Term, ...]:
        found = self._variables.get(term)
        if found is None:
            found = self._variables[term] = tuple(free_variables([term]))
        return found

    def _mentions_memory(self, formula: Sequence[Term]) -> bool:
        return any(self._image.memory in self._variables_of(term) for term in formula)
