"""New values come first, then new combinations, then what was seen least often."""

from __future__ import annotations

from pathlib import Path

import mcveto
from mcveto.engines.alongside import POLICIES
from mcveto.engines.execute import Executor
from mcveto.engines.exploration import Exploration
from mcveto.engines.novelty import MOST_VALUES, NEW_COMBINATION, NEW_VALUE, Novelty
from mcveto.engines.queries import Queries
from mcveto.program.program import Program, load_program
from mcveto.program.spec import InputCall, PropertySpec, Spec

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = 0x1800


def test_order_of_states() -> None:
    program = mcveto.load(spec=str(EXAMPLES / "fig10/x86-32/blast2.yaml"))
    novelty = Novelty(program)
    state = Executor(program, Queries(program, 1e9, 1.0), True).initial()

    def rank(**cells: int) -> int:
        state.memory.cells = {DATA + ord(name): value for name, value in cells.items()}
        return novelty.rank(state)

    assert rank(a=1, b=1) == NEW_VALUE
    assert rank(a=1, b=1) == NEW_COMBINATION + 1
    assert rank(a=2, b=1) == NEW_VALUE
    assert rank(a=1, b=2) == NEW_VALUE
    assert rank(a=2, b=2) == NEW_COMBINATION
    assert rank(a=2, b=2) == NEW_COMBINATION + 1
    for number in range(3, 2 * MOST_VALUES):
        rank(a=number, b=1)
    assert rank(a=200, b=1) > NEW_COMBINATION


def machine_of_states(folder: Path, states: int) -> Program:
    """A loop that goes from state n to n + 1 if the input is 100 + n, else back to state 0; the last is the target."""
    # start: xor ebx, ebx; head: cmp ebx, states; je target; call input; xor esi, eax (no state is like an earlier one);
    # lea ecx, [ebx+100]; cmp eax, ecx; jne reset; inc ebx; jmp head; reset: xor ebx, ebx; jmp head; target: nop
    code = f"31db 83fb{states:02x} 7415 e81f000000 31c6 8d4b64 39c8 7503 43 ebea 31db ebe6"
    content = bytes.fromhex(code.replace(" ", ""))
    assert len(content) == 0x1C
    file = folder / "blob"
    file.write_bytes(content + b"\x90" * (0x2B - len(content)) + b"\xc3")
    spec = Spec(
        arch="x86-32",
        base=0x1000,
        entry=0x1000,
        input_calls=(InputCall(0x102B),),
        properties=(PropertySpec("reach", (0x101C,)),),
    )
    return load_program(str(file), spec)


def test_a_machine_of_many_states_takes_few_paths(tmp_path: Path) -> None:
    found = Exploration(machine_of_states(tmp_path, 30), POLICIES["symex"], 60).run()
    assert found.kind == "violated"
    assert [item.value for item in found.inputs] == list(range(100, 130))
    # Two ways in every state, of which the one that goes back is put off.
    assert found.statistics["nodes"] < 3000
