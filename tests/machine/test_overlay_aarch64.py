"""One concrete case per entry of the AArch64 overlay; each fails if the entry is removed."""

from __future__ import annotations

import pytest

from .overlay_cases import DATA, READ_ONLY, OverlayCase, check, ids, names

FAMILY = "aarch64"
ISA = "aarch64"
MINUS = DATA + 0x80  # the byte there is 0x80
UPPER = 0xFFFFFFFF00000000
CASES = [
    OverlayCase("unchecked", ISA, "25b1b091", "unsupported"),
    OverlayCase("system-registers", ISA, "00443bd5", "unsupported"),
    OverlayCase("udf", ISA, "00000000", "undefined-instruction"),
    OverlayCase("logical-immediate-reserved", ISA, "e07d2bf2", "unsupported"),
    OverlayCase("writeback-base-first", ISA, "735648b8", "unsupported", {"x19": DATA}),
    OverlayCase("writeback-base-second", ISA, "c55af6a9", "unsupported", {"x22": DATA + 0xA0}),
    OverlayCase("load-pair-same", ISA, "e104c0a9", "unsupported", {"x7": DATA}),
    OverlayCase("store-exclusive-status", ISA, "647c0388", "unsupported", {"x3": DATA}),
    OverlayCase("ldpsw-second", ISA, "7eb07669", {"x30": 0x03020100, "x12": 0x07060504}, {"x3": DATA + 0x4C}),
    OverlayCase("load-signed-w", ISA, "856dcf39", {"x5": 0xFFFFFF80}, {"x12": MINUS - 0x3DB}),
    OverlayCase("load-signed-byte-unscaled-w", ISA, "9ec3c238", {"x30": 0xFFFFFF80}, {"x28": MINUS - 0x2C}),
    OverlayCase("store-release-byte", ISA, "6f9c8508", {(DATA, 4): 0x030201FF}, {"x15": 0xFF, "x3": DATA}),
    OverlayCase("store-release-half", ISA, "aa838d48", {(DATA, 4): 0x0302FFFF}, {"x10": 0xFFFF, "x29": DATA}),
    OverlayCase("read-nzcv", ISA, "00423bd5", {"x0": 0xA0000000}, {"NG": 1, "CY": 1}),
    OverlayCase("write-nzcv", ISA, "00421bd5", {"ZR": 1, "CY": 1, "NG": 0, "OV": 0}, {"x0": 0x60000000, "OV": 1}),
    OverlayCase("sbcs-zero-flags", ISA, "9f001f7a", {"ZR": 0, "NG": 1}, {"x4": 0x80000000, "CY": 1}),
    # cas w0, w2, [x1] that does not match
    OverlayCase("compare-and-swap-stores", ISA, "227ca088", "write-permission", {"x1": READ_ONLY}),
    OverlayCase("atomic-smax", ISA, "89432c38", {(MINUS, 1): 5, "x9": 0x80}, {"x28": MINUS, "x12": 5}),
    OverlayCase("atomic-store-smax", ISA, "9f432c38", {(MINUS, 1): 5}, {"x28": MINUS, "x12": 5}),
    OverlayCase("atomic-smin", ISA, "89532c38", {(MINUS, 1): 0x80}, {"x28": MINUS, "x12": 5}),
    OverlayCase("atomic-store-smin", ISA, "9f532c38", {(MINUS, 1): 0x80}, {"x28": MINUS, "x12": 5}),
    OverlayCase("atomic-umax", ISA, "89632c38", {(MINUS, 1): 0x80}, {"x28": MINUS, "x12": 0x101}),
    OverlayCase("atomic-store-umax", ISA, "9f632c38", {(MINUS, 1): 0x80}, {"x28": MINUS, "x12": 0x101}),
    OverlayCase("atomic-umin", ISA, "89732c38", {(MINUS, 1): 5}, {"x28": MINUS, "x12": 0x105}),
    OverlayCase("atomic-store-umin", ISA, "9f732c38", {(MINUS, 1): 5}, {"x28": MINUS, "x12": 0x105}),
    OverlayCase("atomic-upper-half", ISA, "c9802cb8", {"x9": 0x03020100}, {"x6": DATA, "x9": UPPER}),
    OverlayCase("atomic-alignment", ISA, "c9802cb8", "unsupported", {"x6": DATA + 1}),
    OverlayCase("store-release-alignment", ISA, "20fc9f88", "unsupported", {"x1": DATA + 1}),
    OverlayCase("load-exclusive", ISA, "207c5f88", {"monitor": 1, "monitor_address": DATA}, {"x1": DATA}),
    OverlayCase("load-exclusive-pair", ISA, "20087f88", {"monitor": 1, "monitor_size": 8}, {"x1": DATA}),
    OverlayCase("store-exclusive", ISA, "a27c0388", {"x3": 1, (DATA, 1): 0}, {"x2": 9, "x5": DATA}),
    OverlayCase("store-exclusive-narrow", ISA, "a27c0308", {"x3": 1, (DATA, 1): 0}, {"x2": 9, "x5": DATA}),
    OverlayCase("store-exclusive-pair", ISA, "a2102388", {"x3": 1, (DATA, 1): 0}, {"x2": 9, "x5": DATA}),
    OverlayCase("clear-exclusive", ISA, "5f3f03d5", {"monitor": 0}, {"monitor": 1}),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_entry_matters(case: OverlayCase) -> None:
    check(case)


def test_every_entry_has_a_case() -> None:
    assert {case.id for case in CASES} == ids(FAMILY)
