"""The soundness campaign in small: some random programs per instruction set, and that it catches what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mcveto.dpg.outcomes import OutcomeTable
from mcveto.logic import terms as t
from mcveto.logic.terms import Term
from mcveto.machine import symbolic
from mcveto.program.inputs import InputSource
from mcveto.program.program import Program
from mcveto.search import Question, search
from mcveto.verdict import Verdict

from . import side_by_side
from .campaign import Counts, Wrong, minimal, run_campaign, save
from .generate import ENCODERS, FLAVOURS, ISAS, RandomProgram, random_program
from .items import CODE, END_ADDRESSES, Item, assemble, from_text, to_text
from .judge import Choice, ask, check_truth, choices
from .known import PROGRAMS, known, made
from .regressions import load, replayed
from .shrink import shrink
from .subject import Subject, program_of, subject_of
from .truth import truth_of

SECONDS = 0.25
DPG: Choice = ("dpg", "auto", "auto", "block", "path", "witness")


@pytest.mark.parametrize("isa", ISAS)
def test_no_verdict_is_wrong(isa: str) -> None:
    """Three hundred programs in all."""
    counts = run_campaign(
        iter(range(PROGRAMS)), isas=(isa,), seconds=SECONDS, per_program=1, crosscheck=0.05, known=known
    )
    assert [wrong.answered.wrong for wrong in counts.wrong] == []
    assert counts.disputed == []
    kinds = {kind for _, _, kind in counts.verdicts}
    assert "crash" not in kinds
    assert {"proved", "violated"} <= kinds


@pytest.mark.parametrize("isa", ISAS)
def test_known_programs_are_those_that_are_made(isa: str) -> None:
    """If this fails, or takes its programs to be unknown, `python -m tests.campaign.known` writes them again."""
    for seed in random.sample(range(PROGRAMS), 2):
        assert known(isa, seed) == made(isa, seed), seed


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
def test_no_verdict_is_wrong_on_many(isa: str) -> None:
    counts = run_campaign(iter(range(1000, 1500)), isas=(isa,), seconds=SECONDS, per_program=2)
    assert [wrong.answered.wrong for wrong in counts.wrong] == []
    assert counts.disputed == []
    assert "crash" not in {kind for _, _, kind in counts.verdicts}


def test_processes_side_by_side_count_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same programs, truths and numbers of questions; what a verdict is may depend on the time it was given."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    monkeypatch.setattr(side_by_side, "BATCH", 6)
    plan = side_by_side.Plan(first=0, programs=10, seconds=600.0, limit=0.1, per_program=1, jobs=2)
    assert [list(batch) for batch in plan.batches()] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9]]
    progress: list[int] = []
    counts = side_by_side.run_plan(plan, lambda counts: progress.append(sum(counts.programs.values())))
    alone = Counts()
    for batch in plan.batches():
        alone.add(run_campaign(iter(batch), seconds=0.1, per_program=1, crosscheck=0))
    assert (counts.programs, counts.truths) == (alone.programs, alone.truths)
    assert sum(counts.verdicts.values()) == 10 and counts.wrong == []
    assert progress[-1] == 10 and len(progress) == 2


class Caught(Exception):
    """Somebody noticed that the engine is broken."""


def campaign_until_caught(self_check: bool, programs: int = 500) -> None:
    """Raises Caught when a self-check fails or, without it, a verdict contradicts the truth."""

    def asked(program: Program, choice: Choice, seconds: float, seed: int) -> Verdict:
        engine, strategy, fold, steps, *_ = choice
        question = Question(engine, strategy, fold, steps, timeout=seconds, seed=seed, self_check=self_check)
        # Paths are explored by other code than the one that is broken here.
        verdict = search(lambda: program, replace(question, alongside=False)).verdict
        if verdict.reason.startswith("self-check failed"):
            raise Caught
        return verdict

    def caught(wrong: Wrong) -> None:
        assert not self_check, wrong.answered.wrong
        raise Caught

    run_campaign(
        iter(range(programs)),
        isas=("x86-32",),
        seconds=5.0,
        per_program=1,
        asked=[DPG],
        crosscheck=0,
        ask_with=asked,
        on_wrong=caught,
    )


Function = Callable[[Term, Term], Term]
BROKEN: dict[str, tuple[dict[str, Function], str, Function]] = {
    "unsigned < is ≤": (symbolic._COMPARE, "INT_LESS", t.ule),
    "signed < is unsigned": (symbolic._COMPARE, "INT_SLESS", t.ult),
    "exclusive or is or": (symbolic._BINARY, "INT_XOR", t.bor),
    "a shift to the left is one to the right": (symbolic._SHIFT, "INT_LEFT", t.lshr),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("self_check", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_wrong_transfer_function_is_caught(what: str, self_check: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It deceives the engine, but not the checker or the replay; without the checker, not the campaign."""
    table, opcode, wrong = BROKEN[what]
    monkeypatch.setitem(table, opcode, wrong)
    with pytest.raises(Caught):
        campaign_until_caught(self_check)


@pytest.mark.parametrize("self_check", [True, False])
def test_an_engine_that_loses_ways_is_caught(self_check: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first outcome of each block is known to it."""
    original = OutcomeTable.of
    monkeypatch.setattr(OutcomeTable, "of", lambda *arguments: original(*arguments)[:1])
    with pytest.raises(Caught):
        campaign_until_caught(self_check)


def test_a_sound_engine_is_not_caught() -> None:
    campaign_until_caught(self_check=True, programs=5)


def test_an_engine_that_always_claims_a_proof_is_caught_and_shrunk(tmp_path: Path) -> None:
    def overconfident(program: object, choice: Choice, seconds: float, seed: int) -> Verdict:
        return Verdict("proved")

    counts = run_campaign(
        iter(range(10)), isas=("x86-32",), asked=[DPG], per_program=1, crosscheck=0, ask_with=overconfident
    )
    wrong = counts.wrong[0]
    smallest = minimal(wrong, 1.0, ask_with=overconfident)
    assert len(smallest.items) <= 2 < len(wrong.program.items)
    record = load(save(smallest, wrong, tmp_path))
    assert subject_of(record["subject"]) == smallest.subject()
    assert replayed(record, [DPG], lambda *_: Verdict("unknown", reason="time-out")) == []
    assert replayed(record, [DPG], overconfident)[0].startswith("PROVED, but")


def test_a_claimed_violation_that_is_none_is_caught() -> None:
    def jumpy(program: object, choice: Choice, seconds: float, seed: int) -> Verdict:
        return Verdict("violated", "reach")

    counts = run_campaign(iter(range(6)), isas=("riscv32",), asked=[DPG], per_program=1, crosscheck=0, ask_with=jumpy)
    assert "is not confirmed" in counts.wrong[0].answered.wrong


def test_shrinking_keeps_what_matters() -> None:
    program = random_program("x86-32", 6)
    wanted: Item = next(item for item in program.items if item[0] == "read")
    smallest = shrink(program, lambda candidate: wanted in candidate.items)
    assert smallest.items == (wanted,)


@pytest.mark.parametrize("isa", ISAS)
def test_truth_agrees_with_the_reference_emulator(isa: str) -> None:
    rng = random.Random(1)
    for seed in range(100, 102):
        assert check_truth(program_of(random_program(isa, seed).subject()), rng, 4) == ""


@pytest.mark.parametrize("isa", ISAS)
def test_programs_are_what_their_items_say(isa: str) -> None:
    """One program for every item, run in the reference emulator: register 0 tells."""
    items: list[Item] = [("set", 0, 5), ("set", 1, 3), ("add", 0, 1), ("shl", 0, 4), ("sub", 0, 1), ("mul", 0, 1)]
    items += [("xori", 0, 1), ("set", 2, 0x20040), ("store8", 0, 2, 1), ("read", 3, 0x41), ("write", 3, 0x42)]
    items += [("load16", 1, 2, 0), ("call", "f"), ("ifi", "ne", 0, 374 + 0x77, "halt"), ("addr", 1, "t", 0)]
    items += [("jumpr", 1), ("label", "t"), ("slot", "u"), ("label", "u"), ("jump", "target")]
    items += [("label", "f"), ("enter",), ("read", 1, 0x42), ("add", 0, 1), ("leave",)]
    program = RandomProgram(isa, tuple(items), False, 1, 0, "fixed")
    assert from_text(to_text(items)) == items
    outcome = program_of(program.subject()).machine(InputSource([0])).run(100)
    # ((5 + 3) << 4) - 3 = 125, times 3 is 375, xor 1 is 374; its low byte 0x76 is added by f.
    assert (outcome.kind, outcome.pc) == ("halted", END_ADDRESSES["halt"])
    items[items.index(("ifi", "ne", 0, 374 + 0x77, "halt"))] = ("ifi", "ne", 0, 374 + 0x76, "halt")
    program = RandomProgram(isa, tuple(items), False, 1, 0, "fixed")
    outcome = program_of(program.subject()).machine(InputSource([0])).run(100)
    assert (outcome.kind, outcome.pc) == ("target", END_ADDRESSES["target"])
    assert truth_of(program_of(program.subject())).violations == {"reach": [0]}


def test_generated_programs_have_every_feature() -> None:
    programs = [random_program(isa, seed) for isa in ISAS for seed in range(200, 203)]
    assert len({program.flavour for program in programs}) >= len(FLAVOURS) - 2
    assert random_program(ISAS[0], 200) == programs[0]
    words = {item[0] for program in programs for item in program.items}
    assert {"native", "call", "enter", "jumpr", "if", "ifi", "read", "input"} <= words
    assert any(program.writable for program in programs)
    for program in programs:
        code, labels = assemble(ENCODERS[program.isa], program.items)
        assert len(code) == 0x1000 and labels["halt"] == END_ADDRESSES["halt"] > CODE


def test_every_available_choice_is_asked() -> None:
    found = choices()
    assert DPG in found
    assert {choice[3] for choice in found} == {"block", "instruction"}


def test_return_addresses_and_code_are_judged() -> None:
    """A return address that is overwritten, and an instruction that is, on every machine."""
    for isa in ISAS:
        smashed: list[Item] = [("call", "f"), ("jump", "halt"), ("label", "f"), ("enter",), ("addr", 0, "halt", 0)]
        smashed += [("smash", 0, 0), ("leave",)]
        truth = truth_of(program_of(RandomProgram(isa, tuple(smashed), False, 1, 0, "fixed").subject()))
        assert list(truth.violations) == ["return-address"]
        assert ask(program_of(RandomProgram(isa, tuple(smashed), False, 1, 0, "fixed").subject()), DPG, 30).kind == (
            "violated"
        )


def test_a_subject_survives_its_record() -> None:
    for isa in ISAS:
        subject: Subject = random_program(isa, 3).subject()
        assert subject_of(subject.record()) == subject
