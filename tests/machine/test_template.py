"""Templates of P-code: loops, conditions, computed numbers, lanes; and definitions of whole instructions."""

from __future__ import annotations

import pytest

from mcveto.machine.isa.template import expand, read_definition


def test_numbers_and_loops() -> None:
    text = """
    let e = 1 << z
    for i in 2
    %x{i}:{e} = COPY {i * e}:{e}   # a comment
    if i
    %y:1 = COPY %x{i}
    end
    end
    """
    assert expand(text, {"z": 1}).splitlines() == ["%x0:2 = COPY 0:2", "%x1:2 = COPY 2:2", "%y:1 = COPY %x1"]


def test_names_of_a_loop_end_with_it() -> None:
    with pytest.raises(NameError):
        expand("for i in 2\nlet j = i\nend\nCOPY {j}", {})


def test_lanes() -> None:
    assert expand("split %a q1 2 2", {}).splitlines() == ["%a0:2 = SUBPIECE q1, 0:4", "%a1:2 = SUBPIECE q1, 2:4"]
    joined = expand("join z1 %r 2 3", {}).splitlines()
    assert joined == ["%r.1:4 = PIECE %r1, %r0", "%r.2:6 = PIECE %r2, %r.1", "z1 = INT_ZEXT %r.2"]
    assert expand("join z1 %r 8 1", {}) == "z1 = INT_ZEXT %r0"


def test_a_block_must_end() -> None:
    with pytest.raises(ValueError, match="no end"):
        expand("for i in 2\n%x:1 = COPY 0:1", {})


def test_definition_with_a_form() -> None:
    forms = {"twice": "for i in 2\nbody\nend"}
    entry = {
        "id": "x",
        "word": "0q" + "0" * 27 + "ddd if q",
        "form": "twice",
        "code": "A{d} = COPY {q}:1",
        "evidence": "-",
    }
    definition = read_definition(entry, forms)
    assert definition.encoding.matches(0x40000003)
    assert not definition.encoding.matches(3)
    assert definition.expanded(0x40000003).splitlines() == ["A3 = COPY 1:1"] * 2


@pytest.mark.parametrize("change", [{"evidence": ""}, {"mnemonic": "x"}])
def test_definitions_are_checked(change: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="instruction x"):
        read_definition({"id": "x", "word": "0" * 32, "code": "", "evidence": "-", **change}, {})
