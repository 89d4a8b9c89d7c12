"""Relocation types of the supported machines: number → name, formula, places. Only data.

Formulas, with S the symbol, A the addend, P the place, B the load bias, G the symbol's cell in the global
offset table at `got`:

    abs S+A        pc S+A-P          page Page(S+A)-Page(P)    rel B+A        slot S, plus an explicit A
    got G+A        gotpc G+A-P       gotpage Page(G+A)-Page(P) gotrel G+A-got gotoff S+A-got   gotbase got+A-P
    add, sub, set  the stored value plus, minus, replaced by S+A               none nothing to do
    absdata, pcdata like abs, pc but with the Thumb bit of a function's address
    copy, ifunc, unsupported: cannot be known here
The remaining names are handled one by one in `elf_relocate`. Sources: the processor supplements of the System
V ABI (i386 1.1, AMD64 1.0, PowerPC 1995 and its Linux supplement, MIPS 3rd ed.), "ELF for the Arm
Architecture" and "… for the Arm 64-bit Architecture" (2023Q1), "RISC-V ELF psABI" 1.0.
"""

from dataclasses import dataclass

from mcveto.program.image.elf_fields import Field, word


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    formula: str
    places: tuple[tuple[int, Field], ...]

    @property
    def size(self) -> int:
        """Bytes from the place that the relocation may change."""
        return max((offset + field.size for offset, field in self.places), default=8)

    @property
    def field(self) -> Field:
        return self.places[0][1]


def _rule(name: str, formula: str, *fields: Field) -> Rule:
    return Rule(name, formula, tuple((4 * index, field) for index, field in enumerate(fields)))


_W8, _W16, _W32, _W64 = word(1, "e"), word(2, "e"), word(4), word(8)
_WIDTHS = {8: word(1), 16: word(2), 32: word(4), 64: word(8)}

_X86_32 = {
    0: _rule("NONE", "none"),
    1: _rule("32", "abs", _W32),
    2: _rule("PC32", "pc", _W32),
    3: _rule("GOT32", "got32x", _W32),
    4: _rule("PLT32", "pc", _W32),
    5: _rule("COPY", "copy"),
    6: _rule("GLOB_DAT", "slot", _W32),
    7: _rule("JUMP_SLOT", "slot", _W32),
    8: _rule("RELATIVE", "rel", _W32),
    9: _rule("GOTOFF", "gotoff", _W32),
    10: _rule("GOTPC", "gotbase", _W32),
    20: _rule("16", "abs", _W16),
    21: _rule("PC16", "pc", _W16),
    22: _rule("8", "abs", _W8),
    23: _rule("PC8", "pc", _W8),
    42: _rule("IRELATIVE", "ifunc", _W32),
    43: _rule("GOT32X", "got32x", _W32),
}
_S32, _U32 = word(4, "s"), word(4, "u")
_X86_64 = {
    0: _rule("NONE", "none"),
    1: _rule("64", "abs", _W64),
    2: _rule("PC32", "pc", _S32),
    4: _rule("PLT32", "pc", _S32),
    5: _rule("COPY", "copy"),
    6: _rule("GLOB_DAT", "slot", _W64),
    7: _rule("JUMP_SLOT", "slot", _W64),
    8: _rule("RELATIVE", "rel", _W64),
    9: _rule("GOTPCREL", "gotpc", _S32),
    10: _rule("32", "abs", _U32),
    11: _rule("32S", "abs", _S32),
    12: _rule("16", "abs", _W16),
    13: _rule("PC16", "pc", word(2, "s")),
    14: _rule("8", "abs", _W8),
    15: _rule("PC8", "pc", word(1, "s")),
    24: _rule("PC64", "pc", _W64),
    25: _rule("GOTOFF64", "gotoff", _W64),
    26: _rule("GOTPC32", "gotbase", _S32),
    37: _rule("IRELATIVE", "ifunc", _W64),
    41: _rule("GOTPCRELX", "gotpc", _S32),
    42: _rule("REX_GOTPCRELX", "gotpc", _S32),
}

_PPC_B24 = Field(4, ((2, 24, 2),), "s", 26, align=4)
_PPC_B14 = Field(4, ((2, 14, 2),), "s", 16, align=4)
_LO16 = Field(2, ((0, 16, 0),))
_HI16 = Field(2, ((16, 16, 0),))
_HA16 = Field(2, ((16, 16, 0),), rounding=0x8000)
_PPC32 = {
    0: _rule("NONE", "none"),
    1: _rule("ADDR32", "abs", _W32),
    2: _rule("ADDR24", "abs", _PPC_B24),
    3: _rule("ADDR16", "abs", _W16),
    4: _rule("ADDR16_LO", "abs", _LO16),
    5: _rule("ADDR16_HI", "abs", _HI16),
    6: _rule("ADDR16_HA", "abs", _HA16),
    7: _rule("ADDR14", "abs", _PPC_B14),
    10: _rule("REL24", "pc", _PPC_B24),
    11: _rule("REL14", "pc", _PPC_B14),
    14: _rule("GOT16", "gotrel", word(2, "s")),
    15: _rule("GOT16_LO", "gotrel", _LO16),
    16: _rule("GOT16_HI", "gotrel", _HI16),
    17: _rule("GOT16_HA", "gotrel", _HA16),
    18: _rule("PLTREL24", "ppcplt", _PPC_B24),
    19: _rule("COPY", "copy"),
    20: _rule("GLOB_DAT", "slot", _W32),
    21: _rule("JMP_SLOT", "slot", _W32),
    22: _rule("RELATIVE", "rel", _W32),
    23: _rule("LOCAL24PC", "pc", _PPC_B24),
    24: _rule("UADDR32", "abs", _W32),
    26: _rule("REL32", "pc", _W32),
    248: _rule("IRELATIVE", "ifunc", _W32),
    249: _rule("REL16", "pc", word(2, "s")),
    250: _rule("REL16_LO", "pc", _LO16),
    251: _rule("REL16_HI", "pc", _HI16),
    252: _rule("REL16_HA", "pc", _HA16),
}

_ARM_B24 = Field(4, ((2, 24, 0),), "s", 26, align=4)
_ARM_MOV = Field(4, ((0, 12, 0), (12, 4, 16)))
_ARM_MOVT = Field(4, ((16, 12, 0), (28, 4, 16)))
_THUMB_MOV = Field(4, ((0, 8, 0), (8, 3, 12), (11, 1, 26), (12, 4, 16)), halves=True)
_THUMB_MOVT = Field(4, ((16, 8, 0), (24, 3, 12), (27, 1, 26), (28, 4, 16)), halves=True)
_THUMB_B24 = Field(4, (), halves=True)  # the J1/J2 bits are handled in elf_relocate
_THUMB_B11 = Field(2, ((1, 11, 0),), "s", 12, align=2)
_THUMB_B8 = Field(2, ((1, 8, 0),), "s", 9, align=2)
_ARM = {
    0: _rule("NONE", "none"),
    1: _rule("PC24", "armjump", _ARM_B24),
    2: _rule("ABS32", "absdata", _W32),
    3: _rule("REL32", "pcdata", _W32),
    5: _rule("ABS16", "abs", _W16),
    8: _rule("ABS8", "abs", _W8),
    10: _rule("THM_CALL", "thumbcall", _THUMB_B24),
    20: _rule("COPY", "copy"),
    21: _rule("GLOB_DAT", "slotdata", _W32),
    22: _rule("JUMP_SLOT", "slotdata", _W32),
    23: _rule("RELATIVE", "rel", _W32),
    24: _rule("GOTOFF32", "gotoff", _W32),
    25: _rule("BASE_PREL", "gotbase", _W32),
    26: _rule("GOT_BREL", "gotrel", _W32),
    27: _rule("PLT32", "armcall", _ARM_B24),
    28: _rule("CALL", "armcall", _ARM_B24),
    29: _rule("JUMP24", "armjump", _ARM_B24),
    30: _rule("THM_JUMP24", "thumbjump", _THUMB_B24),
    38: _rule("TARGET1", "absdata", _W32),
    40: _rule("V4BX", "none"),
    42: _rule("PREL31", "pcdata", Field(4, ((0, 31, 0),), "s", 31)),
    43: _rule("MOVW_ABS_NC", "movdata", _ARM_MOV),
    44: _rule("MOVT_ABS", "mov", _ARM_MOVT),
    45: _rule("MOVW_PREL_NC", "movpcdata", _ARM_MOV),
    46: _rule("MOVT_PREL", "movpc", _ARM_MOVT),
    47: _rule("THM_MOVW_ABS_NC", "movdata", _THUMB_MOV),
    48: _rule("THM_MOVT_ABS", "mov", _THUMB_MOVT),
    49: _rule("THM_MOVW_PREL_NC", "movpcdata", _THUMB_MOV),
    50: _rule("THM_MOVT_PREL", "movpc", _THUMB_MOVT),
    96: _rule("GOT_PREL", "gotpc", _W32),
    102: _rule("THM_JUMP11", "pc", _THUMB_B11),
    103: _rule("THM_JUMP8", "pc", _THUMB_B8),
    160: _rule("IRELATIVE", "ifunc", _W32),
}


def _lo12(scale: int) -> Field:
    """The 12-bit offset of an AArch64 load or store, counted in units of 2**scale bytes."""
    return Field(4, ((scale, 12 - scale, 10),), align=1 << scale)


def _movw(group: int, check: str = "") -> Field:
    return Field(4, ((16 * group, 16, 5),), check, 16 * (group + 1))


_ADR = ((0, 2, 29), (2, 19, 5))
_ADRP = Field(4, ((12, 2, 29), (14, 19, 5)), "s", 33)
_A64_B26 = Field(4, ((2, 26, 0),), "s", 28, align=4)
_A64_B19 = Field(4, ((2, 19, 5),), "s", 21, align=4)
_AARCH64 = {
    0: _rule("NONE", "none"),
    256: _rule("NONE", "none"),
    257: _rule("ABS64", "abs", _W64),
    258: _rule("ABS32", "abs", word(4, "e")),
    259: _rule("ABS16", "abs", _W16),
    260: _rule("PREL64", "pc", _W64),
    261: _rule("PREL32", "pc", word(4, "e")),
    262: _rule("PREL16", "pc", _W16),
    263: _rule("MOVW_UABS_G0", "abs", _movw(0, "u")),
    264: _rule("MOVW_UABS_G0_NC", "abs", _movw(0)),
    265: _rule("MOVW_UABS_G1", "abs", _movw(1, "u")),
    266: _rule("MOVW_UABS_G1_NC", "abs", _movw(1)),
    267: _rule("MOVW_UABS_G2", "abs", _movw(2, "u")),
    268: _rule("MOVW_UABS_G2_NC", "abs", _movw(2)),
    269: _rule("MOVW_UABS_G3", "abs", _movw(3)),
    273: _rule("LD_PREL_LO19", "pc", _A64_B19),
    274: _rule("ADR_PREL_LO21", "pc", Field(4, _ADR, "s", 21)),
    275: _rule("ADR_PREL_PG_HI21", "page", _ADRP),
    276: _rule("ADR_PREL_PG_HI21_NC", "page", Field(4, _ADRP.parts)),
    277: _rule("ADD_ABS_LO12_NC", "abs", _lo12(0)),
    278: _rule("LDST8_ABS_LO12_NC", "abs", _lo12(0)),
    279: _rule("TSTBR14", "pc", Field(4, ((2, 14, 5),), "s", 16, align=4)),
    280: _rule("CONDBR19", "pc", _A64_B19),
    282: _rule("JUMP26", "pc", _A64_B26),
    283: _rule("CALL26", "pc", _A64_B26),
    284: _rule("LDST16_ABS_LO12_NC", "abs", _lo12(1)),
    285: _rule("LDST32_ABS_LO12_NC", "abs", _lo12(2)),
    286: _rule("LDST64_ABS_LO12_NC", "abs", _lo12(3)),
    299: _rule("LDST128_ABS_LO12_NC", "abs", _lo12(4)),
    309: _rule("GOT_LD_PREL19", "gotpc", _A64_B19),
    311: _rule("ADR_GOT_PAGE", "gotpage", _ADRP),
    312: _rule("LD64_GOT_LO12_NC", "got", _lo12(3)),
    314: _rule("PLT32", "pc", word(4, "s")),
    1024: _rule("COPY", "copy"),
    1025: _rule("GLOB_DAT", "slot", _W64),
    1026: _rule("JUMP_SLOT", "slot", _W64),
    1027: _rule("RELATIVE", "rel", _W64),
    1032: _rule("IRELATIVE", "ifunc", _W64),
}

_RV_U = Field(4, ((12, 20, 12),), "s", 32, rounding=0x800)
_RV_I = Field(4, ((0, 12, 20),))
_RV_S = Field(4, ((0, 5, 7), (5, 7, 25)))
_RV_B = Field(4, ((1, 4, 8), (5, 6, 25), (11, 1, 7), (12, 1, 31)), "s", 13, align=2)
_RV_J = Field(4, ((1, 10, 21), (11, 1, 20), (12, 8, 12), (20, 1, 31)), "s", 21, align=2)
_RV_CB = Field(2, ((1, 2, 3), (3, 2, 10), (5, 1, 2), (6, 2, 5), (8, 1, 12)), "s", 9, align=2)
_RV_CJ = Field(
    2,
    ((1, 3, 3), (4, 1, 11), (5, 1, 2), (6, 1, 7), (7, 1, 6), (8, 2, 9), (10, 1, 8), (11, 1, 12)),
    "s",
    12,
    align=2,
)
_RV_LOW6 = Field(1, ((0, 6, 0),))


def _riscv(bits: int) -> dict[int, Rule]:
    pointer = word(bits // 8)
    upper = _RV_U if bits == 64 else Field(4, _RV_U.parts, rounding=0x800)
    return {
        0: _rule("NONE", "none"),
        1: _rule("32", "abs", word(4, "e")),
        2: _rule("64", "abs", _W64),
        3: _rule("RELATIVE", "rel", pointer),
        4: _rule("COPY", "copy"),
        5: _rule("JUMP_SLOT", "slot", pointer),
        16: _rule("BRANCH", "pc", _RV_B),
        17: _rule("JAL", "pc", _RV_J),
        18: _rule("CALL", "pc", upper, _RV_I),
        19: _rule("CALL_PLT", "pc", upper, _RV_I),
        20: _rule("GOT_HI20", "gotpc", upper),
        23: _rule("PCREL_HI20", "pc", upper),
        24: _rule("PCREL_LO12_I", "pclow", _RV_I),
        25: _rule("PCREL_LO12_S", "pclow", _RV_S),
        26: _rule("HI20", "abs", upper),
        27: _rule("LO12_I", "abs", _RV_I),
        28: _rule("LO12_S", "abs", _RV_S),
        33: _rule("ADD8", "add", _WIDTHS[8]),
        34: _rule("ADD16", "add", _WIDTHS[16]),
        35: _rule("ADD32", "add", _WIDTHS[32]),
        36: _rule("ADD64", "add", _WIDTHS[64]),
        37: _rule("SUB8", "sub", _WIDTHS[8]),
        38: _rule("SUB16", "sub", _WIDTHS[16]),
        39: _rule("SUB32", "sub", _WIDTHS[32]),
        40: _rule("SUB64", "sub", _WIDTHS[64]),
        41: _rule("GOT32_PCREL", "gotpc", word(4, "s")),
        43: _rule("ALIGN", "none"),
        44: _rule("RVC_BRANCH", "pc", _RV_CB),
        45: _rule("RVC_JUMP", "pc", _RV_CJ),
        51: _rule("RELAX", "none"),
        52: _rule("SUB6", "sub", _RV_LOW6),
        53: _rule("SET6", "set", _RV_LOW6),
        54: _rule("SET8", "set", _WIDTHS[8]),
        55: _rule("SET16", "set", _WIDTHS[16]),
        56: _rule("SET32", "set", _WIDTHS[32]),
        57: _rule("32_PCREL", "pc", word(4, "s")),
        58: _rule("IRELATIVE", "ifunc", pointer),
        59: _rule("PLT32", "pc", word(4, "s")),
    }


_MIPS_LO = Field(4, ((0, 16, 0),))
_MIPS_HI = Field(4, ((16, 16, 0),), rounding=0x8000)
_MIPS_S16 = Field(4, ((0, 16, 0),), "s", 16)
_MIPS32 = {
    0: _rule("NONE", "none"),
    2: _rule("32", "abs", _W32),
    3: _rule("REL32", "mipsrel32", _W32),
    4: _rule("26", "mips26", Field(4, ((2, 26, 0),), "", 28, align=4)),
    5: _rule("HI16", "mipshi", _MIPS_HI),
    6: _rule("LO16", "mipslo", _MIPS_LO),
    7: _rule("GPREL16", "gprel", _MIPS_S16),
    9: _rule("GOT16", "mipsgot", _MIPS_S16),
    10: _rule("PC16", "pc", Field(4, ((2, 16, 0),), "s", 18, align=4)),
    11: _rule("CALL16", "mipsgot", _MIPS_S16),
    12: _rule("GPREL32", "gprel", _W32),
    37: _rule("JALR", "none"),
    51: _rule("GLOB_DAT", "slot", _W32),
    126: _rule("COPY", "copy"),
    127: _rule("JUMP_SLOT", "slot", _W32),
    248: _rule("PC32", "pc", _W32),
}

RULES: dict[str, dict[int, Rule]] = {
    "x86-32": _X86_32,
    "x86-64": _X86_64,
    "ppc32-be": _PPC32,
    "ppc32-le": _PPC32,
    "arm": _ARM,
    "arm-be": _ARM,
    "arm-be8": _ARM,
    "aarch64": _AARCH64,
    "riscv32": _riscv(32),
    "riscv64": _riscv(64),
    "mips32-be": _MIPS32,
    "mips32-le": _MIPS32,
}

NEEDS_CELL = frozenset({"got", "gotpc", "gotpage", "gotrel", "got32x", "mipsgot"})
