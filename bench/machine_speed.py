"""Instructions per second: the compiled machine beside Unicorn with a per-instruction hook, on the same programs.

    python bench/machine_speed.py [--isa x86-32] [--only bubble] [--steps 2000000] [--repeat 1]

Both record the program counter of every instruction. Ours starts cold in every row, so the time to warm up and to
compile is included. The binaries in bench/workloads are built from workloads.c without (O0) and with (O1) optimisation.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path
from typing import Any

from mcveto.machine.compiled import CompiledMachine
from mcveto.machine.isa import decoder_for
from mcveto.machine.memory import Memory, RegionSpec

WORKLOADS = {
    "alu": (0, 1 << 30),
    "memory_copy": (1, 1 << 30),
    "bubble": (2, 1 << 30),
    "fibonacci": (3, 40),
    "crc": (4, 1 << 30),
    "sieve": (5, 1 << 30),
    "mixed": (6, 1 << 30),
}
STACK, STACK_SIZE, HALT = 0x7F000000, 0x10000, 0x7E000000


def segments(path: Path) -> tuple[int, list[RegionSpec]]:
    """Entry point and page-aligned regions of a static ELF file."""
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as stream:
        elf = ELFFile(stream)
        regions: list[RegionSpec] = []
        for segment in elf.iter_segments("PT_LOAD"):
            start = segment["p_vaddr"] & ~0xFFF
            size = (segment["p_vaddr"] + segment["p_memsz"] - start + 0xFFF) & ~0xFFF
            content = bytes(segment["p_vaddr"] - start) + segment.data()
            regions.append(RegionSpec(path.stem, start, size, segment["p_flags"], content))
        return int(elf["e_entry"]), regions


def start_state(isa: str, which: int, amount: int) -> tuple[dict[str, int], bytes]:
    """Registers by name and the top of the stack for a call of start(which, amount) that returns to HALT."""
    top = STACK + STACK_SIZE - 0x100
    if isa == "x86-32":
        return {"ESP": top}, b"".join(value.to_bytes(4, "little") for value in (HALT, which, amount))
    if isa == "x86-64":
        return {"RSP": top, "RDI": which, "RSI": amount}, HALT.to_bytes(8, "little")
    return {"r1": top, "r3": which, "r4": amount, "LR": HALT}, b""


def run_ours(isa: str, path: Path, which: int, amount: int, steps: int) -> tuple[float, list[int], int]:
    decoder = decoder_for(isa)
    entry, regions = segments(path)
    registers, top = start_state(isa, which, amount)
    memory = Memory(
        [*regions, RegionSpec("stack", STACK, STACK_SIZE, 6)], decoder.row.address_bits, decoder.row.big_endian
    )
    memory.poke(STACK + STACK_SIZE - 0x100, top)
    cells = {decoder.layout.named(name)[0].cell.number: value for name, value in registers.items()}
    machine = CompiledMachine(decoder, memory, cells, entry, halts=[HALT])
    begin = time.perf_counter()
    outcome = machine.run(steps)
    duration = time.perf_counter() - begin
    assert outcome.kind in ("limit", "halted"), outcome
    return duration, list(islice(machine.trace.pcs(), 200_000)), len(machine.trace)


def run_unicorn(isa: str, path: Path, which: int, amount: int, steps: int) -> tuple[float, list[int], int]:
    import unicorn
    from unicorn import ppc_const, x86_const

    arch, mode = {
        "x86-32": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_32),
        "x86-64": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_64),
        "ppc32-be": (unicorn.UC_ARCH_PPC, unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN),
    }[isa]
    engine = unicorn.Uc(arch, mode)
    entry, regions = segments(path)
    for region in regions:
        engine.mem_map(region.start, region.size)
        engine.mem_write(region.start, region.content)
    engine.mem_map(STACK, STACK_SIZE)
    engine.mem_map(HALT, 0x1000)
    registers, top = start_state(isa, which, amount)
    engine.mem_write(STACK + STACK_SIZE - 0x100, top)
    for name, value in registers.items():
        number = name.replace("r", "") if isa == "ppc32-be" and name != "LR" else name
        constant = f"UC_PPC_REG_{number}" if isa == "ppc32-be" else f"UC_X86_REG_{name}"
        engine.reg_write(getattr(ppc_const if isa == "ppc32-be" else x86_const, constant), value)
    pcs: list[int] = []
    append = pcs.append

    def hook(_engine: Any, address: int, _size: int, _data: Any) -> None:
        append(address)

    engine.hook_add(unicorn.UC_HOOK_CODE, hook)
    begin = time.perf_counter()
    engine.emu_start(entry, HALT, count=steps)
    duration = time.perf_counter() - begin
    return duration, pcs[:200_000], len(pcs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa", action="append", choices=["x86-32", "x86-64", "ppc32-be"])
    parser.add_argument("--only", action="append", choices=sorted(WORKLOADS))
    parser.add_argument("--level", action="append", choices=["O0", "O1"])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=1, help="best of this many runs, for both sides")
    options = parser.parse_args()
    print(f"{'program':28} {'steps':>9} {'ours M/s':>9} {'Unicorn M/s':>12} {'ratio':>6}  same trace")
    worst = 0.0
    for isa in options.isa or ["x86-32", "x86-64", "ppc32-be"]:
        decoder_for(isa)
        for level in options.level or ["O0", "O1"]:
            path = Path(__file__).parent / "workloads" / f"{isa}-{level}.elf"
            for name in options.only or list(WORKLOADS):
                which, amount = WORKLOADS[name]
                ours = min(run_ours(isa, path, which, amount, options.steps) for _ in range(options.repeat))
                theirs = min(run_unicorn(isa, path, which, amount, options.steps) for _ in range(options.repeat))
                same = ours[1] == theirs[1] and ours[2] == theirs[2]
                rates = ours[2] / ours[0] / 1e6, theirs[2] / theirs[0] / 1e6
                ratio = rates[0] / rates[1]
                worst = ratio if not worst else min(worst, ratio)
                print(
                    f"{isa + ' ' + level + ' ' + name:28} {ours[2]:9} {rates[0]:9.2f} {rates[1]:12.2f} {ratio:6.1f}  {same}"
                )
    print(f"lowest ratio {worst:.1f}")


if __name__ == "__main__":
    main()
