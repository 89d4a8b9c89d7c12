"""A changed certificate is rejected; one that is accepted must still be a proof.

Changes are made with a fitting seal: what is tested are the obligations. A change can leave a proof (an invariant
without a condition that nothing needed): who decides is `Companion`, by concrete execution. It must be able to
accompany runs, and to step from states that the changed locations admit.
"""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest

from mcveto.check.discharge import Effort, check

from .companion import Companion
from .mutations import KINDS as CHANGES
from .mutations import mutate
from .proofs import COVERED, KINDS, QUICK, as_data, certificate_for, from_data, program_of, proved

# Changes after which nothing but a rejection is possible: the claim is about other code or has a hole.
FATAL = ("change byte", "drop instruction", "change pc")


def try_mutation(name: str, seed: int) -> tuple[str, bool]:
    """(what was changed, whether it was accepted); fails if it was accepted and is wrong."""
    program, original = proved(name)
    data = as_data(original)
    kind, changed = mutate(data, random.Random(f"{name}/{seed}"))
    mutant = from_data(data)
    if mutant == original:
        return kind, True
    unsealed = msgspec.structs.replace(mutant, seal=original.seal)
    assert "seal" in check(unsealed, program.image, Effort()).problem
    checked = check(mutant, program.image, Effort(timeout=60))
    if not checked.problem:
        assert checked.program is not None
        companion = Companion(checked.program, mutant)
        assert [companion.follow(run) for run in range(4)] == [""] * 4, (name, seed, kind)
        for place in changed:
            assert [companion.step_somewhere(place, state) for state in range(6)] == [""] * 6, (name, seed, kind)
        assert kind not in FATAL, (name, seed, kind)
    return kind, not checked.problem


@pytest.mark.parametrize("name", QUICK)
def test_few_mutations(name: str) -> None:
    results = [try_mutation(name, seed) for seed in range(5)]
    assert any(not accepted for _, accepted in results)


@pytest.mark.parametrize("name", QUICK)
def test_the_companion_agrees_with_proofs(name: str) -> None:
    program, certificate = proved(name)
    assert check(certificate, program.image, Effort()).problem == ""
    companion = Companion(program, certificate)
    assert {companion.follow(seed) for seed in range(4)} == {""}
    assert {companion.step_somewhere(location.id, 0) for location in certificate.locations[:20]} == {""}


@pytest.mark.parametrize("name", COVERED)
def test_states_that_were_seen_before(name: str) -> None:
    """There are steps back, and what was drawn goes by the names of the next location: without one of these notes the
    proof does not hold."""
    program, certificate = proved(name)
    assert check(certificate, program.image, Effort()).problem == ""
    numbers = {location.id: number for number, location in enumerate(certificate.locations)}
    steps = [(numbers[location.id], step) for location in certificate.locations for step in location.steps]
    assert any(step != "halt" and numbers[step] <= number for number, step in steps)
    renamings = [
        (number, at) for number, location in enumerate(certificate.locations) for at, _ in enumerate(location.notes)
    ]
    assert renamings
    rejected = 0
    for number, at in renamings:
        data = as_data(certificate)
        data["locations"][number]["notes"].pop(at)
        rejected += bool(check(from_data(data), program.image, Effort()).problem)
    assert rejected


@pytest.mark.parametrize("name", ["while countdown", "model strlen", KINDS[0]])
def test_a_halt_must_be_listed(name: str) -> None:
    """Also where nothing could be executed at its address, so that stopping there might pass for a fault."""
    program, certificate = proved(name)
    data = as_data(certificate)
    halting = [location for location in data["locations"] if "halt" in location["steps"]]
    assert halting
    for location in halting:
        location["steps"].remove("halt")
    assert check(from_data(data), program.image, Effort()).problem


def test_a_byte_that_is_said_to_be_two_values() -> None:
    """What a condition states is all of what it states, also where it names a byte twice."""
    program, original = proved("bmc machine/tricks/smc-next")
    data = as_data(original)
    assert data["locations"][-1]["invariant"][0][1].count("(select mem #x08048125)") == 1
    twice = data["locations"][-1]["invariant"][0][1].replace("#x08048125", "#x08048124")
    data["locations"][-1]["invariant"][0][1] = twice
    assert "does not hold" in check(from_data(data), program.image, Effort()).problem
    # And where one of its numbers is written in another way.
    other = twice.replace("#x08048124)", "#x0804812A)", 1).replace("#xffffffdc", "#x000000dc")
    data["locations"][-1]["invariant"][0][1] = other
    assert "does not hold" in check(from_data(data), program.image, Effort()).problem


@pytest.mark.slow
def test_a_thousand_mutations() -> None:
    names = (*KINDS, *COVERED)
    results = Counter(try_mutation(names[seed % len(names)], seed) for seed in range(1000))
    assert {kind for kind, _ in results} == set(CHANGES)
    rejected = sum(count for (_, accepted), count in results.items() if not accepted)
    print(f"{rejected} rejected;", *(f"{kind} accepted {n}," for (kind, accepted), n in results.items() if accepted))
    assert rejected >= 850, results


@pytest.mark.parametrize("name", ["fig10/x86-32/slam1", "fig10/x86-32/smc1-unbounded"])
def test_a_false_invariant_is_no_way_out(name: str) -> None:
    """An invariant that nothing satisfies has no steps to check; whoever leads there must then fail."""
    original = certificate_for(name)
    assert original is not None
    for number in range(len(original.locations)):
        data = as_data(original)
        data["locations"][number]["invariant"] = []
        assert check(from_data(data), program_of(name).image, Effort()).problem


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("question", "targets"), []),
        (("question", "halts"), []),
        (("question", "replaced"), []),
        (("question", "properties"), ["reach"]),
        (("question", "entry"), "0x8048100"),
        (("assumptions",), []),
        (("spec", "properties"), []),
        (("spec", "halt"), []),
        (("spec", "inputs"), {}),
        (("spec", "entry"), "0x8048100"),
        (("spec", "stack"), 4096),
        (("spec", "properties"), ["memory-safety"]),
        (("binary", "sha256"), "0" * 64),
        (("binary", "isa"), "x86-64"),
        (("start",), []),
        (("start",), ["halt"]),
        (("start",), ["L999"]),
        (("locations",), []),
    ],
)
def test_another_question_is_not_answered(path: tuple[str, ...], value: object) -> None:
    name = "fig10/x86-32/slam1"
    original = certificate_for(name)
    assert original is not None
    data = as_data(original)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    assert inner.get(path[-1]) != value
    inner[path[-1]] = value
    assert check(from_data(data), program_of(name).image, Effort()).problem


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "true) (assert false",
        "(= EAX #x00000000",
        "EAX",
        "(= EAX nothing)",
        "; true",
        "(= EAX #x00)",
        '"x"',
        "true true",
    ],
)
def test_conditions_that_are_none(condition: str) -> None:
    name = "fig10/x86-32/store-REACH-0"
    original = certificate_for(name)
    assert original is not None
    data = as_data(original)
    data["locations"][0]["invariant"] = [[condition]]
    assert check(from_data(data), program_of(name).image, Effort()).problem


@pytest.mark.parametrize("value", ["0x100000000", "-0x1", "10", "0x", "ANY", "0X10", "0x0000"])
@pytest.mark.parametrize("key", ["pc", "stack_pointer", "frame_pointer"])
def test_numbers_that_are_none(key: str, value: str) -> None:
    name = "fig10/x86-32/store-REACH-0"
    original = certificate_for(name)
    assert original is not None
    data = as_data(original)
    data["locations"][0][key] = value
    assert check(from_data(data), program_of(name).image, Effort()).problem


ODD: tuple[object, ...] = (
    "",
    "0x",
    "any",
    "halt",
    "L99999",
    [],
    {},
    0,
    -1,
    True,
    "(",
    "zz NOP",
    "0x" + "f" * 99,
    [""],
    [[]],
)


@pytest.mark.parametrize("name", ["fig10/x86-32/store-REACH-0", "machine/tricks/mips-delay"])
def test_odd_values_are_rejected_in_words(name: str) -> None:
    """A value of the wrong kind anywhere is a refusal, never a crash."""
    original = certificate_for(name)
    assert original is not None
    generator = random.Random(name)
    refused = 0
    for _ in range(100):
        data = as_data(original)
        location = generator.choice(data["locations"])
        location[generator.choice(sorted(set(location) - {"id"}))] = generator.choice(ODD)
        try:
            mutant = from_data(data)
        except msgspec.ValidationError:
            refused += 1
            continue
        refused += bool(check(mutant, program_of(name).image, Effort()).problem)
    assert refused >= 75
