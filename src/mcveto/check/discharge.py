"""Discharges the obligations of a certificate: Z3 must find each one unsatisfiable, several processes share the work.

Memory is an unconstrained array in a formula, although the image fixes some of its bytes. They are added when a model
contradicts them, so only the bytes that matter are ever mentioned. What Z3 cannot decide in its time goes to Bitwuzla
as SMT-LIB text; `second` asks both about everything. An obligation that nobody decides rejects the certificate.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import z3

from mcveto.check.certificate import Certificate
from mcveto.check.formulas import Formula, is_word, parts, reads
from mcveto.check.inverses import divided, is_refuted
from mcveto.check.obligations import Checker, Obligation
from mcveto.check.procedures import checker_of, obligations_of
from mcveto.check.question import Rejected, read_program
from mcveto.orphans import in_forks
from mcveto.program.image import Image
from mcveto.program.program import Program


@dataclass(frozen=True, slots=True)
class Effort:
    """How to check: processes, seconds for one obligation and for all of them, whether Bitwuzla must agree on each, and
    whether one that nobody decides is the end, or others are looked at that may not hold."""

    jobs: int = 1
    timeout: float = 60.0
    second: bool = False
    seconds: float = float("inf")
    hasty: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """What was checked; `problem` is empty if every obligation holds."""

    problem: str
    undecided: bool
    """Whether the problem is only that no solver could tell."""
    obligations: int
    seconds: float
    program: Program | None


def check(certificate: Certificate, image: Image, effort: Effort) -> Checked:
    """Re-proves a certificate about the program in `image`."""
    started = time.monotonic()
    program: Program | None = None
    problem, undecided, count = "", False, 0
    try:
        program = read_program(certificate, image)
        for found, answer, number in _results(checker_of(certificate, program), effort):
            count += number
            if found and (not problem or undecided):
                problem, undecided = found, answer == "unknown"
            if problem and (effort.hasty or not undecided):
                break
    except Rejected as error:
        problem, undecided = str(error), False
    return Checked(problem, undecided, count, time.monotonic() - started, program)


Result = tuple[str, str, int]
_shared: tuple[Checker, Effort, float] | None = None
"""What processes share: what is checked, how, and until when."""


def _results(checker: Checker, effort: Effort) -> Iterator[Result]:
    """(problem or "", the solvers' answer, obligations) of the entry and of each location or procedure."""
    global _shared
    _shared = checker, effort, time.monotonic() + effort.seconds
    places = range(-1, len(checker.locations))
    jobs = min(effort.jobs, len(places) // checker.few)
    results = in_forks(jobs, _check_place, places, min(4, checker.few)) if jobs > 1 else map(_check_place, places)
    yield from (result or ("a process that shared the work was killed", "unknown", 0) for result in results)


def _check_place(number: int) -> Result:
    """Checks the obligations of one location or procedure (-1: of the entry)."""
    assert _shared is not None
    checker, effort, deadline = _shared
    count = 0
    try:
        for count, obligation in enumerate(obligations_of(checker, number), 1):
            if (left := deadline - time.monotonic()) <= 0:
                return f"not all obligations were looked at in {effort.seconds:.0f} s", "unknown", count
            answer = refuted(obligation, replace(effort, timeout=min(effort.timeout, left)))
            if answer != "unsat":
                what = "does not hold" if answer == "sat" else f"is not decided in {effort.timeout:g} s"
                return f"{obligation.what} {what}", answer, count
    except Rejected as error:
        return str(error), "sat", count
    return "", "unsat", count


def refuted(obligation: Obligation, effort: Effort) -> str:
    """ "unsat" if the obligation holds, "sat" if it does not, "unknown" if nobody can tell.

    Each way of asking is tried shortly before any is given all the time: most obligations are easy for one of them. In
    haste, the time is for all ways together, twice."""
    end = time.monotonic() + (2 if effort.hasty else 100) * effort.timeout
    if any(formula is False for formula in obligation.formulas):
        return "unsat"
    formulas = tuple(formula for formula in obligation.formulas if formula is not True)
    obligation = replace(obligation, formulas=formulas if effort.second else divided(formulas, _rewritten))
    for turn, seconds in enumerate((0.02, 0.1, *(max(0.1, share * effort.timeout) for share in (0.02, 0.06, 1)))):
        seconds = max(0.01, min(seconds, effort.timeout, end - time.monotonic()))
        if not effort.second and is_refuted(obligation.formulas, seconds):
            return "unsat"
        for make in (z3.SimpleSolver, z3.Solver):
            if turn == 1 and make is z3.Solver and not effort.second and _is_equal_as_polynomials(formulas):
                return "unsat"
            if (answer := _z3(obligation, solver := make(), seconds)) != "unknown":
                return _bitwuzla(solver.to_smt2(), effort.timeout) if effort.second and answer == "unsat" else answer
        # Not all bytes that are known may have been stated: only a refutation counts.
        if _bitwuzla(solver.to_smt2(), max(0.05, seconds if turn < 4 else 0.3 * seconds)) == "unsat":
            return "unsat"
    return "unknown"


def _rewritten(formulas: Sequence[Formula], *tactics: Any) -> tuple[Formula, ...]:
    """What tactics of Z3 leave of formulas: of most obligations "false", if values that are stated are put in."""
    goal = z3.Goal()
    goal.add(*formulas)
    return tuple(z3.Then(*(tactics or ("simplify", "propagate-values")))(goal)[0])


def _is_equal_as_polynomials(formulas: Sequence[Formula]) -> bool:
    """Whether formulas contradict each other by equations of polynomials alone. Sums and products have names meanwhile,
    so that they stay whole where bytes of them are stored and loaded; words of memory are variables that are unrelated
    to each other: that can only hide a contradiction."""
    sums = [term for term in parts([*formulas]) if term.decl().kind() in (z3.Z3_OP_BADD, z3.Z3_OP_BMUL)]
    products = [term.children() for term in sums if term.decl().kind() == z3.Z3_OP_BMUL]
    if all(any(z3.is_bv_value(x) and x.as_long().bit_count() == 1 for x in factors) for factors in products):
        return False  # Only shifts.
    named = [(term, z3.FreshConst(term.sort())) for term in sums]
    both = z3.And([x == x for term in sums for x in term.children()] + [*formulas])
    rest = iter(z3.substitute(both, *named).children())
    equations = [name == reduce(term.decl(), [next(rest).arg(0) for _ in term.children()]) for term, name in named]
    whole = z3.And(_rewritten([*equations, *rest]))
    words = [(term, z3.FreshConst(term.sort())) for term in parts([whole]) if is_word(term)]
    left = _rewritten([z3.substitute(whole, *words)], "solve-eqs", z3.With("simplify", som=True))
    return any(map(z3.is_false, left))


def _z3(obligation: Obligation, solver: Any, timeout: float) -> str:
    """Z3's answer; `solver` then holds the obligation with the known bytes that turned out to matter."""
    solver.add(*obligation.formulas)
    end = time.monotonic() + timeout
    while (left := end - time.monotonic()) > 0:
        solver.set("timeout", max(1, int(1000 * left)))
        answer = str(solver.check())
        if not (contradicted := _contradicted(obligation, solver.model()) if answer == "sat" else []):
            return answer
        solver.add(*contradicted)
    return "unknown"


def _contradicted(obligation: Obligation, model: Any) -> list[Any]:
    """What is known of the bytes read in the formulas, where the model has another value: of all equal ones around it
    at once, or a question about any cell of an array would be asked as often as it has cells."""
    facts: list[Any] = []
    for (_, at), (memory, known) in itertools.product(reads(list(obligation.formulas)), obligation.known):
        where = model.eval(at, model_completion=True).as_long()
        if (byte := known(where)) is not None and z3.is_false(model.eval(memory[where] == byte, model_completion=True)):
            low, high = (_last_equal(known, where, step) for step in (-1, 1))
            facts += [memory[where] == byte, z3.Implies(z3.And(z3.UGE(at, low), z3.ULE(at, high)), memory[at] == byte)]
    return facts


def _last_equal(known: Callable[[int], int | None], address: int, step: int) -> int:
    """Where the bytes end that are known to be the same as this one, in one direction, as far as it is looked."""
    near = range(address, max(-1, address + step * (1 << 13)), step)
    return [*itertools.takewhile(lambda at: known(at) == known(address), near)][-1]


# Z3's own names for division with the values of the standard where the divisor is 0.
_INTERNAL = re.compile(r"\bbv([us](?:div|rem|mod))_i\b")


def _bitwuzla(script: str, timeout: float) -> str:
    """Bitwuzla's answer to a script of Z3's; "unknown" also if it cannot read it."""
    import bitwuzla

    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, max(1, int(1000 * timeout)))
    manager = bitwuzla.TermManager()
    parser = bitwuzla.Parser(manager, options)
    try:
        parser.parse(_INTERNAL.sub(r"bv\1", script), True, False)
    except bitwuzla.BitwuzlaException:
        return "unknown"
    return str(parser.bitwuzla().check_sat()).lower().rpartition(".")[2]
