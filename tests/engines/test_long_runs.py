"""Long runs find what is far away, with the inputs that they consumed, and claim nothing else."""

from __future__ import annotations

from pathlib import Path

import mcveto
from mcveto.check.replay import confirmed
from mcveto.engines.long_runs import LongRuns
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec

EXAMPLES = Path(__file__).parents[2] / "examples"
# mov ecx, 200000; again: dec ecx; jnz again
LOOP = "b9400d0300 49 75fd"


def program(folder: Path, rest: str, target: int, *inputs: int) -> Program:
    file = folder / "blob"
    file.write_bytes(bytes.fromhex((LOOP + rest).replace(" ", "")))
    calls = tuple(InputCall(at) for at in inputs)
    properties = (PropertySpec("reach", (target,)),)
    spec = Spec(arch="x86-32", base=0x1000, entry=0x1000, input_calls=calls, properties=properties)
    return load_program(str(file), spec)


def test_a_target_behind_a_long_loop_is_reached(tmp_path: Path) -> None:
    subject = program(tmp_path, "90 c3", 0x1008)
    runs = LongRuns(subject, 60.0)
    assert runs.advance(states=1) is None
    found = runs.advance()
    assert found is not None
    assert (found.kind, found.at, found.inputs) == ("violated", 0x1008, ())
    assert confirmed(subject, found).confirmed_by == ("emulator", "unicorn")


def test_the_inputs_are_those_of_the_run(tmp_path: Path) -> None:
    # call input; test eax, eax; jnz +1; target: nop; ret; input: ret
    subject = program(tmp_path, "e806000000 85c0 7501 90 c3 c3", 0x1011, 0x1013)
    found = LongRuns(subject, 60.0).advance()
    assert found is not None
    assert found.kind == "violated"
    assert [item.value for item in found.inputs] == [0]
    assert confirmed(subject, found).kind == "violated"


def test_an_input_that_a_loop_counts_to_is_large_but_not_too_large(tmp_path: Path) -> None:
    # call input; mov edx, eax; again: add ebx, eax; dec eax; jnz again; cmp edx, 4096; jb +6; shr edx, 20; jnz +1;
    # target: nop; ret; input: ret
    subject = program(tmp_path, "e816000000 89c2 01c3 48 75fb 81fa00100000 7206 c1ea14 7501 90 c3 c3", 0x1021, 0x1023)
    found = LongRuns(subject, 60.0).advance()
    assert found is not None
    assert found.kind == "violated"
    (item,) = found.inputs
    assert 1 << 12 <= item.value < 1 << 20


def test_small_numbers_are_tried_one_after_the_other(tmp_path: Path) -> None:
    # call input; lea edx, [eax-6]; cmp edx, 4; ja +1; target: nop; ret; input: ret
    subject = program(tmp_path, "e80a000000 8d50fa 83fa04 7701 90 c3 c3", 0x1015, 0x1017)
    found = LongRuns(subject, 60.0).advance()
    assert found is not None and found.kind == "violated"
    (item,) = found.inputs
    assert 6 <= item.value <= 10


def test_the_first_input_may_differ_from_all_others(tmp_path: Path) -> None:
    # call input; mov ebx, eax; mov ecx, 64; again: call input; xor eax, ebx; test al, 1; je +4; dec ecx; jnz again;
    # target: nop; ret; input: ret
    subject = program(tmp_path, "e817000000 89c3 b940000000 e80b000000 31d8 a801 7404 49 75f2 90 c3 c3", 0x1022, 0x1024)
    found = LongRuns(subject, 60.0).advance()
    assert found is not None and found.kind == "violated"
    first, *others = [item.value for item in found.inputs]
    assert len(others) == 64 and all((first ^ other) & 1 for other in others)
    assert confirmed(subject, found).kind == "violated"


def test_inputs_are_made_smaller_where_only_skipping_gets_there(tmp_path: Path) -> None:
    # call input; mov edx, eax; again: add ebx, eax; dec eax; jnz again; shr edx, 17; jz +1; target: nop; ret;
    # input: ret
    subject = program(tmp_path, "e80e000000 89c2 01c3 48 75fb c1ea11 7401 90 c3 c3", 0x1019, 0x101B)
    found = LongRuns(subject, 60.0).advance()
    assert found is not None and found.kind == "violated"
    (item,) = found.inputs
    assert 1 << 17 <= item.value < 1 << 18
    assert "unicorn" in confirmed(subject, found).confirmed_by


def test_a_run_that_ends_elsewhere_proves_nothing(tmp_path: Path) -> None:
    found = LongRuns(program(tmp_path, "c3 90", 0x1009), 60.0).advance()
    assert found is not None
    assert found.kind == "unknown"


def test_a_target_behind_a_return_that_goes_astray_is_not_claimed(tmp_path: Path) -> None:
    # push target; ret; target: nop
    found = LongRuns(program(tmp_path, "680e100000 c3 90", 0x100E), 60.0).advance()
    assert found is not None
    assert found.kind == "unknown"


def test_an_endless_run_is_given_up_in_time(tmp_path: Path) -> None:
    found = LongRuns(program(tmp_path, "ebfe 90", 0x100A), 0.5).advance()
    assert found is not None
    assert found.kind == "unknown"


def test_other_properties_are_left_to_others() -> None:
    assert not LongRuns.apply_to(mcveto.load(spec=str(EXAMPLES / "memory/ppc32-be/loop-bound-bug.yaml")))
