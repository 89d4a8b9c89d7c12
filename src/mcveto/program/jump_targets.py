"""Where a computed jump or call can go, found from the few instructions before it.

A switch compares its index with the size of its table, jumps away if it is too large, and goes on to the address that
the table holds. So the instructions before the jump are followed back as long as there is one way only to come to them,
and executed symbolically from any state whatever; where the program cannot write, memory is as in the file. All values
of the target under the conditions passed are then the targets: more than ever occur, perhaps, but never fewer, provided
that the ways given are all there are. Loads that fault end a run, so they lead nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mcveto.logic import terms as t
from mcveto.logic.solver import MemoryModel, Solver, make_solver
from mcveto.logic.terms import Term, free_variables
from mcveto.machine.faults import Fault, Unsupported
from mcveto.machine.interpreter import Interpreter
from mcveto.machine.memory import EXECUTE
from mcveto.machine.pcode import FreshOrigin, Instruction, Space, Transfer
from mcveto.machine.symbolic import SymbolicDomain
from mcveto.machine.symbolic_memory import SymbolicMemory
from mcveto.program.image_facts import ImageFacts
from mcveto.program.program import Program

LONGEST_CHAIN = 24
MOST_TARGETS = 512
_MOST_WAYS = 64
# Targets that are no code: beyond so many, nothing limits the jump as far as can be seen.
_MOST_ASTRAY = 4
_MOST_QUESTIONS = 2 * MOST_TARGETS
_SECONDS = 5.0

Before = Callable[[int], Sequence[int] | None]
"""The program counters that control comes from to one, by a jump or by falling through; None if it may also come from
elsewhere (a call, a return)."""


class JumpTargets:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._interpreter: Interpreter[Term] = Interpreter(program.decoder)
        self._known: dict[tuple[int, ...], frozenset[int] | None] = {}

    def of(
        self, jump: Instruction, before: Before, instruction: Callable[[int], Instruction | None]
    ) -> set[int] | None:
        """The program counters that the jump may lead to; None if they are not certain."""
        chain = [jump]
        while len(chain) < LONGEST_CHAIN:
            ways = before(chain[0].pc)
            if ways is None or len(ways) != 1 or any(ways[0] == item.pc for item in chain):
                break
            previous = instruction(ways[0])
            if previous is None or ways[0] in self._program.hooks or _repeats(previous):
                break
            chain.insert(0, previous)
        key = tuple(item.pc for item in chain)
        if key not in self._known:
            self._known[key] = self._targets(chain)
        found = self._known[key]
        return None if found is None else set(found)

    def _targets(self, chain: Sequence[Instruction]) -> frozenset[int] | None:
        found: set[int] = set()
        solver = make_solver("auto")
        try:
            for conditions, target in self._ways(chain):
                values = self._values(solver, conditions, target)
                if values is None or len(found | values) > MOST_TARGETS:
                    return None
                found |= values
        except (Unsupported, OverflowError):
            return None
        finally:
            solver.close()
        return frozenset(found)

    def _ways(self, chain: Sequence[Instruction]) -> Iterator[tuple[list[Term], Term]]:
        """The conditions of each way along the chain, and the target behind it; raises OverflowError for too many."""
        scripts: list[list[bool]] = [[]]
        count = 0
        while scripts:
            count += 1
            if count > _MOST_WAYS:
                raise OverflowError
            script = scripts.pop()
            decisions: list[bool] = []
            fresh = 0

            def choose(condition: Term, script: list[bool] = script, decisions: list[bool] = decisions) -> bool:
                if len(decisions) == len(script):
                    scripts.append([*decisions, False])
                    script.append(True)
                decisions.append(script[len(decisions)])
                return decisions[-1]

            def new(bits: int, origin: FreshOrigin, usual: Term, count: int = count) -> Term:
                nonlocal fresh
                fresh += 1
                return t.var(f"fresh{count}_{fresh}", bits)

            program = self._program
            memory = SymbolicMemory(program.space, at_entry=False)
            domain = SymbolicDomain(program.decoder.layout, program.space, choose, new, memory)
            passed: list[Term] = []
            target = self._along(chain, domain, passed)
            if target is not None:
                yield [*(constraint.term for constraint in domain.path), *passed], target

    def _along(self, chain: Sequence[Instruction], domain: SymbolicDomain, passed: list[Term]) -> Term | None:
        """The target behind the chain; None if the decisions taken lead elsewhere. What computed jumps on the way must
        lead to is added to `passed`."""
        for number, item in enumerate(chain):
            try:
                step = self._interpreter.execute(item, domain)
            except Fault:
                return None
            target = step.target
            assert isinstance(target, Term)
            if number == len(chain) - 1:
                # What the jump does when it does not jump is known without it.
                return None if step.transfer is Transfer.FALL else target
            here = t.eq(target, t.const(chain[number + 1].pc, target.width))
            if here is t.FALSE:
                return None
            if here is not t.TRUE:
                passed.append(here)
        return None

    def _values(self, solver: Solver, conditions: list[Term], target: Term) -> set[int] | None:
        """All values of the target; None if there are too many, or it is not known."""
        if target.op == "const" and not conditions:
            return {int(target.data)}
        found: set[int] = set()
        astray = 0
        image = ImageFacts(self._program, at_entry=False)
        formula = [*conditions, target]
        variables = free_variables(formula)
        solver.push()
        try:
            for condition in conditions:
                solver.add(condition)
            for _ in range(_MOST_QUESTIONS):
                answer = solver.check((), _SECONDS)
                if answer != "sat":
                    return found if answer == "unsat" else None
                values = {variable: solver.value(variable) for variable in variables if variable.width}
                model = solver.model_memory(image.memory) if image.memory in variables else MemoryModel(0)
                wrong, _, truth = image.evaluate(formula, values, model)
                if wrong:
                    for fact in image.learn(wrong):
                        solver.add(fact)
                    continue
                value = truth[-1]
                found.add(value)
                astray += not self._is_code(value)
                if len(found) > MOST_TARGETS or astray > _MOST_ASTRAY:
                    return None
                solver.add(t.ne(target, t.const(value, target.width)))
            return None
        finally:
            solver.pop()

    def _is_code(self, pc: int) -> bool:
        program = self._program
        region = program.space.region_at(program.decoder.row.code_address(pc))
        return pc in program.hooks or (region is not None and bool(region.permissions & EXECUTE))


def _repeats(instruction: Instruction) -> bool:
    """Whether an instruction may be executed several times before control goes on."""
    return any(
        op.opcode in ("BRANCH", "CBRANCH") and op.inputs[0].space is Space.RAM and op.inputs[0].offset == instruction.pc
        for op in instruction.ops
    )
