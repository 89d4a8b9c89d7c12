"""One concrete case per entry of the RISC-V overlay; each fails if the entry is removed."""

from __future__ import annotations

import pytest

from .overlay_cases import DATA, READ_ONLY, OverlayCase, check, ids, names

FAMILY = "riscv"
ONES = 0xFFFFFFFF
CASES = [
    OverlayCase("unchecked", "riscv32", "73960000", "unsupported"),
    OverlayCase("unimp", "riscv32", "731000c0", "undefined-instruction"),
    OverlayCase("div-by-zero", "riscv32", "33c5c502", {"a0": ONES}, {"a1": 7}),
    OverlayCase("divu-by-zero", "riscv32", "33d5c502", {"a0": ONES}, {"a1": 7}),
    OverlayCase("rem-by-zero", "riscv32", "33e5c502", {"a0": 7}, {"a1": 7}),
    OverlayCase("remu-by-zero", "riscv32", "33f5c502", {"a0": 7}, {"a1": 7}),
    OverlayCase("div-by-zero", "riscv64", "3bc5c502", {"a0": (1 << 64) - 1}, {"a1": 7}),
    OverlayCase("remu-by-zero", "riscv64", "3bf5c502", {"a0": 0xFFFFFFFF80000000}, {"a1": 0x80000000}),
    OverlayCase("c-jalr-target", "riscv32", "8290", {"pc": 0x1000, "ra": 0x8002}, {"ra": 0x1001}),
    OverlayCase("c-jr-target", "riscv32", "0287", {"pc": 0x1000}, {"a4": 0x1001}),
    OverlayCase("c-ret-target", "riscv32", "8280", {"pc": 0x1000, "transfer": "RETURN"}, {"ra": 0x1001}),
    OverlayCase("return-through-link", "riscv32", "67800200", {"transfer": "RETURN"}, {"t0": 0x1000}),
    OverlayCase("c-reserved-zero", "riscv32", "4e50", "unsupported", {"sp": DATA}),
    OverlayCase("atomic-alignment", "riscv32", "2fa50510", "misaligned", {"a1": DATA + 2}),
    # amomin.w a0, a2, (a1): the minimum is the old value, the store needs permission all the same
    OverlayCase("amo-minmax-stores", "riscv32", "2fa5c580", "write-permission", {"a1": READ_ONLY, "a2": 0x7FFFFFFF}),
    OverlayCase(
        "store-conditional", "riscv32", "2f26d718", "unsupported", {"a4": DATA, "RESERVE": 1, "RESERVE_ADDRESS": 64}
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_entry_matters(case: OverlayCase) -> None:
    check(case)


def test_every_entry_has_a_case() -> None:
    assert {case.id for case in CASES} == ids(FAMILY)
