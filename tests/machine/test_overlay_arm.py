"""One concrete case per entry of the ARM overlay; each fails if the entry is removed."""

from __future__ import annotations

import pytest

from mcveto.machine.isa import decoder_for

from .overlay_cases import DATA, OverlayCase, check, ids, names, outcome

FAMILY = "arm"
ISA = "arm"
CASES = [
    OverlayCase("unchecked", ISA, "00000fe1", "unsupported"),
    OverlayCase("exception-return", ISA, "04f05ee2", "unsupported", {"lr": 0x1004}),
    OverlayCase("banked-registers", ISA, "640154e8", "unsupported", {"r4": DATA + 64}),
    OverlayCase("multiple-writeback-base", ISA, "0300b1e8", "unsupported", {"r1": DATA}),
    OverlayCase("multiple-thumb-base", ISA, "76c4", "unsupported", {"r4": DATA}, thumb=True),
    OverlayCase("multiple-thumb-list", ISA, "bde898be", "unsupported", {"sp": DATA}, thumb=True),
    OverlayCase("single-writeback-base", ISA, "7c33e3e5", "unsupported", {"r3": DATA - 0x37C}),
    OverlayCase("double-literal", ISA, "df82cfe1", "unsupported"),
    OverlayCase("double-writeback-base", ISA, "69e9c992", "unsupported", {"r9": DATA + 0x324}, thumb=True),
    OverlayCase("double-same", ISA, "d1e90055", "unsupported", {"r1": DATA}, thumb=True),
    OverlayCase("double-index", ISA, "d32084e1", "unsupported", {"r4": DATA}),
    OverlayCase("double-unprivileged", ISA, "d88be5e0", "unsupported", {"r5": DATA}),
    OverlayCase("signed-literal", ISA, "9ff9ea6f", "unsupported", thumb=True),
    OverlayCase("extract-width", ISA, "5aabeee7", "unsupported"),
    OverlayCase("insert-width", ISA, "10ead3e7", "unsupported"),
    OverlayCase("bit-field-thumb", ISA, "46f3b415", "unsupported", thumb=True),
    OverlayCase("should-be-one", ISA, "b612b1e6", "unsupported"),
    OverlayCase("should-be-zero", ISA, "7916a9e6", "unsupported"),
    OverlayCase("branch-exchange-thumb", ISA, "1547", "unsupported", thumb=True),
    OverlayCase("thumb-logical-carry", ISA, "3af03075", {"CY": 0}, {"CY": 1}, thumb=True),
    OverlayCase("thumb-move-carry", ISA, "5ff03070", {"CY": 0, "r0": 0x2C00000}, {"CY": 1}, thumb=True),
    OverlayCase("thumb-shift-32", ISA, "4fea1805", "unsupported", thumb=True),
    OverlayCase("move-shifted-pc", ISA, "a7f6a0e1", "unsupported", {"r7": 0x156EAE07}),
    OverlayCase("register-shift-pc", ISA, "7afea0e1", "unsupported"),
    OverlayCase("thumb-source-twice", ISA, "97fa85fa", "unsupported", thumb=True),
    OverlayCase("thumb-clz", ISA, "befa0ef3", "unsupported", thumb=True),
    OverlayCase("single-pop-return", ISA, "04f09de4", {"transfer": "RETURN", "sp": DATA + 4}, {"sp": DATA}),
    OverlayCase("divide-unsigned", ISA, "12f133e7", {"r3": 0}, {"r2": 7, "r3": 9}),
    OverlayCase("divide-signed", ISA, "12f113e7", {"r3": 0}, {"r2": 7, "r3": 9}),
    OverlayCase("load-alignment", ISA, "050091e8", "misaligned", {"r1": DATA + 2}),
    OverlayCase("store-alignment", ISA, "050081e8", "misaligned", {"r1": DATA + 2}),
    OverlayCase("load-exclusive", ISA, "9f0f91e1", {"monitor": 1, "monitor_address": DATA}, {"r1": DATA}),
    OverlayCase("load-exclusive-double", ISA, "9f2fb1e1", {"monitor": 1, "monitor_size": 8}, {"r1": DATA}),
    OverlayCase("store-exclusive-status", ISA, "921f81e1", "unsupported", {"r1": DATA}),
    OverlayCase("store-exclusive", ISA, "920f81e1", {"r0": 1, (DATA, 1): 0}, {"r1": DATA, "r2": 9}),
    OverlayCase("clear-exclusive", ISA, "1ff07ff5", {"monitor": 0}, {"monitor": 1}),
    OverlayCase("program-counter-base", ISA, "4e711fe4", "unsupported"),
    OverlayCase("half-literal", ISA, "bfb45fe1", "unsupported"),
    OverlayCase("push-upwards", ISA, "ade8835f", "unsupported", {"sp": DATA + 64}, thumb=True),
    OverlayCase("extend-thumb", ISA, "5dfaf3f7", "unsupported", thumb=True),
    OverlayCase("saturate-signed", ISA, "1000a7e6", {"r0": 127, "Q": 1}, {"r0": 1000}),
    OverlayCase("saturate-signed-thumb", ISA, "00f30700", {"r0": 127, "Q": 1}, {"r0": 1000}, thumb=True),
    OverlayCase("saturate-unsigned", ISA, "1150ffe6", {"r5": 0, "Q": 1}, {"r1": 0xFFFFFFFF}),
    OverlayCase("saturate-halves-thumb", ISA, "23f31701", "unsupported", thumb=True),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_entry_matters(case: OverlayCase) -> None:
    check(case)


def test_every_entry_has_a_case() -> None:
    assert {case.id for case in CASES} == ids(FAMILY)


@pytest.mark.parametrize(
    ("code", "loaded", "base"),
    [("d0e90001", ("r0", "r1"), "r0"), ("d1e90201", ("r0", "r1"), "r1"), ("dbe90012", ("r1", "r2"), "r11")],
)
def test_two_registers_loaded_into_the_base(code: str, loaded: tuple[str, str], base: str) -> None:
    """ldrd r0,r1,[r0], ldrd r0,r1,[r1,#8] and ldrd r1,r2,[r11]: both words come from the old base."""
    offset = 8 if base == "r1" else 0
    first, second = 0x03020100, 0x07060504
    case = OverlayCase("", ISA, code, {loaded[0]: first, loaded[1]: second}, {base: DATA - offset}, thumb=True)
    assert outcome(decoder_for(ISA), case) == case.expect
