"""Conditions that exclude each other, tracked as one."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcveto.dpg.runs import Choices
from mcveto.dpg.strengthen import explicit_values
from mcveto.dpg.strengthen.explicit_values import ExplicitValues
from mcveto.dpg.strengthen.houdini import surviving
from mcveto.dpg.strengthen.joint_conditions import follows
from mcveto.dpg.strengthen.system import System
from mcveto.logic import terms as t
from mcveto.logic.substitute import substitute
from mcveto.logic.terms import Term
from tests.dpg.blob_program import BASE, blob_program
from tests.dpg.strengthen.test_explicit_values import explored_part

# call input; push eax; mov ebx, eax; xor esi, esi; again: test esi, esi; jne one; cmp ebx, -256; jne again; inc esi;
# jmp again; one: cmp byte [esp+1], 0; je target; dec esi; jmp again; target: nop; ret; input: ret
COPIED = "e820000000 50 89c3 31f6 85f6 750b 81fb00ffffff 75f4 46 ebf1 807c240100 7403 4e ebe7 90 c3 c3"
TARGET, INPUT = BASE + 0x23, BASE + 0x25
ATOMS = [t.var(name, 1) for name in "abcd"]


def copied(folder: Path) -> System:
    program = blob_program(folder, bytes.fromhex(COPIED.replace(" ", "")), INPUT, TARGET)
    return explored_part(program, [Choices(fresh={0: 0xFFFFFF00})], seeds=2)[0]


def test_a_copy_is_tested_byte_by_byte(tmp_path: Path) -> None:
    system = copied(tmp_path)
    found = ExplicitValues(system, system.exits()).search()
    assert found.is_safe and not found.paths
    for cut, invariants in found.invariants.items():
        for invariant in invariants:
            assert system.samples.holds(cut, invariant)
    kept = surviving(system, {cut: dict(claims) for cut, claims in found.invariants.items()})
    assert kept == found.invariants


def test_it_is_the_conjunction_that_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explicit_values, "joint_conditions", lambda path, conflict: [])
    system = copied(tmp_path)
    assert not ExplicitValues(system, system.exits()).search().is_safe


@given(
    st.lists(st.sampled_from([*ATOMS, *map(t.bnot, ATOMS)]), min_size=2, max_size=4),
    st.dictionaries(st.sampled_from(ATOMS), st.booleans()),
    st.booleans(),
)
def test_what_follows_is_true_in_every_case_that_is_left(
    parts: list[Term], known: dict[Term, bool], holds: bool
) -> None:
    """The oracle: all values of the variables."""
    joint = t.conj(parts)
    if joint.op != "and":
        return
    values = {atom: t.TRUE if value else t.FALSE for atom, value in known.items()}
    said = follows(joint, holds, lambda term: substitute(term, values))
    left = []
    for chosen in product((t.FALSE, t.TRUE), repeat=len(ATOMS)):
        case = dict(zip(ATOMS, chosen, strict=True))
        if all(case[atom] is value for atom, value in values.items()) and (substitute(joint, case) is t.TRUE) == holds:
            left.append(case)
    if said is None:
        assert not left
    else:
        assert left
        assert all(substitute(literal, case) is t.TRUE for literal in said for case in left)
        open_parts = [part for part in joint.args if substitute(part, values).op != "const"]
        if len(open_parts) == 1 and all(substitute(part, values) is not t.FALSE for part in joint.args):
            assert said
