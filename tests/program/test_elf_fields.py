"""Relocation fields: what is written can be read back, nothing else changes, nothing is truncated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcveto.program.image.elf_fields import DoesNotFit, Field
from mcveto.program.image.elf_rules import RULES
from mcveto.program.image.model import address_bits

FIELDS = sorted(
    {
        (isa, rule.name, index)
        for isa, rules in RULES.items()
        for rule in rules.values()
        for index, (_, field) in enumerate(rule.places)
        if field.parts
    }
)


def field_of(isa: str, name: str, index: int) -> Field:
    rule = next(rule for rule in RULES[isa].values() if rule.name == name and rule.places)
    return rule.places[index][1]


@pytest.mark.parametrize(("isa", "name", "index"), FIELDS)
def test_parts_are_disjoint_and_inside_the_container(isa: str, name: str, index: int) -> None:
    field = field_of(isa, name, index)
    container, value = 0, 0
    for value_bit, width, container_bit in field.parts:
        for bits, at, limit in ((container, container_bit, 8 * field.size), (value, value_bit, 64)):
            mask = (1 << width) - 1 << at
            assert not bits & mask
            assert at + width <= limit
        container |= (1 << width) - 1 << container_bit
        value |= (1 << width) - 1 << value_bit


def in_range(field: Field, value: int, bits: int) -> bool:
    """Whether some number congruent to `value` is allowed by the field's check, by looking at all of them."""
    residues = [value % (1 << bits) + turn * (1 << bits) + field.rounding for turn in (-1, 0)]
    half, full = 1 << max(field.top - 1, 0), 1 << field.top
    limits = {"": (-(1 << 70), 1 << 70), "s": (-half, half), "u": (0, full), "e": (-half, full)}[field.check]
    return any(limits[0] <= residue < limits[1] for residue in residues)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(FIELDS), st.integers(0, (1 << 64) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_value_is_stored_or_refused(which: tuple[str, str, int], noise: int, value: int) -> None:
    field = field_of(*which)
    bits = max(address_bits(which[0]), 8 * field.size)
    for candidate in (value, value % (1 << 12), -(value % (1 << 12)), value & ~0xFFF, value % (1 << 26) & ~3):
        container = noise % (1 << 8 * field.size)
        try:
            changed = field.insert(container, candidate, bits)
        except DoesNotFit:
            assert candidate % field.align or not in_range(field, candidate, bits)
            continue
        assert not candidate % field.align
        assert in_range(field, candidate, bits)
        for little in (True, False):
            assert field.load(field.store(changed, little), little) == changed
        mask = sum((1 << width) - 1 << at for _, width, at in field.parts)
        assert changed & ~mask == container & ~mask
        for value_bit, width, container_bit in field.parts:
            expected = (candidate + field.rounding) >> value_bit & (1 << width) - 1
            assert changed >> container_bit & (1 << width) - 1 == expected


def test_ranges_are_exact() -> None:
    call = field_of("aarch64", "CALL26", 0)
    assert call.insert(0x94000000, (1 << 27) - 4, 64) == 0x95FFFFFF
    assert call.insert(0x94000000, -(1 << 27), 64) == 0x96000000
    for value in (1 << 27, -(1 << 27) - 4, 2):
        with pytest.raises(DoesNotFit):
            call.insert(0x94000000, value, 64)
    unsigned, signed = field_of("x86-64", "32", 0), field_of("x86-64", "32S", 0)
    assert unsigned.insert(0, 0xFFFFFFFF, 64) == 0xFFFFFFFF
    assert signed.insert(0, -1, 64) == 0xFFFFFFFF
    for field, value in ((unsigned, -1), (unsigned, 1 << 32), (signed, 0x80000000), (signed, -0x80000001)):
        with pytest.raises(DoesNotFit):
            field.insert(0, value, 64)
    upper = field_of("riscv64", "PCREL_HI20", 0)
    assert upper.insert(0x17, 0x7FFFF7FF, 64) == 0x7FFFF017
    with pytest.raises(DoesNotFit):
        upper.insert(0x17, 0x7FFFF800, 64)
