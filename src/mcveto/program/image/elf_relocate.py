"""Applying ELF relocations to the memory under construction.

Everything that is not certain — an unknown type, a value that does not fit, a symbol that another module
would define, a resolver that would have to run — leaves the bytes unspecified and says so. Nothing is
truncated or guessed.
"""

from dataclasses import dataclass, field

from mcveto.program.image.elf_fields import DoesNotFit
from mcveto.program.image.elf_rules import RULES, Rule
from mcveto.program.image.memory import Memory, Notes
from mcveto.program.image.model import address_bits, is_big_endian


class CannotApply(Exception):
    """Why the bytes of a relocation stay unspecified."""


@dataclass(frozen=True, slots=True)
class Target:
    """The symbol of a relocation; where its `address` cannot be known here, `why` says the reason."""

    name: str
    address: int | None
    thumb: bool = False
    code: bool = False
    local: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Relocation:
    place: int
    type: int
    target: Target
    addend: int | None
    cell: int | None = None
    """Address of the target's global offset table cell, for the types that need one."""


@dataclass(slots=True)
class Relocator:
    memory: Memory
    notes: Notes
    isa: str
    bias: int = 0
    got: int | None = None
    gp: int | None = None
    applied: int = 0
    _riscv_upper: dict[int, int] = field(default_factory=dict)

    def rule(self, kind: int) -> Rule | None:
        return RULES[self.isa].get(kind)

    def apply_all(self, relocations: list[Relocation]) -> None:
        """Apply in order; the lower halves of MIPS and RISC-V pairs find their upper halves first."""
        later: list[Relocation] = []
        pending_hi: list[Relocation] = []
        for relocation in relocations:
            rule = self.rule(relocation.type)
            if rule is not None and rule.formula == "pclow":
                later.append(relocation)
            elif rule is not None and self._waits_for_low(rule, relocation):
                pending_hi.append(relocation)
            elif rule is not None and rule.formula == "mipslo":
                self._apply_mips_pair(pending_hi, relocation)
            else:
                self.apply(relocation)
        for relocation in pending_hi:
            self._give_up(relocation, self.rule(relocation.type), "its LO16 partner is missing")
        for relocation in later:
            self.apply(relocation)

    def apply(self, relocation: Relocation) -> None:
        rule = self.rule(relocation.type)
        try:
            self._apply(relocation, rule)
        except (CannotApply, DoesNotFit) as problem:
            self._give_up(relocation, rule, str(problem))

    def _give_up(self, relocation: Relocation, rule: Rule | None, problem: str) -> None:
        label = f"relocation {rule.name}" if rule else f"relocation type {relocation.type}"
        about = f" against {relocation.target.name}" if relocation.target.name else ""
        self.notes.add(
            f"{label} at {relocation.place:#x}{about} not applied ({problem}): those bytes are unspecified",
            "relocation not applied",
        )
        size = rule.size if rule else 8
        if rule and rule.formula in ("thumbcall", "thumbjump"):
            size = 4
        self.memory.forget(relocation.place, size)

    def _apply(self, relocation: Relocation, rule: Rule | None) -> None:
        if rule is None:
            raise CannotApply("unsupported type")
        match rule.formula:
            case "none":
                return
            case "copy":
                raise CannotApply("the value comes from another module")
            case "ifunc":
                raise CannotApply("its resolver function would have to run")
        containers = [self._container(relocation.place + offset, rule, i) for i, (offset, _) in enumerate(rule.places)]
        if rule.formula in ("thumbcall", "thumbjump"):
            self._thumb_branch(relocation, rule, containers[0])
            return
        addend = relocation.addend
        if addend is None:
            addend = self._implicit_addend(rule, containers[0])
        if rule.formula == "armcall":
            containers[0] = self._arm_call_mode(relocation, containers[0])
        value = self._value(relocation, rule, addend, containers[0])
        if rule.formula in ("pc", "gotpc"):
            self._riscv_upper[relocation.place] = value
        for (offset, place), container in zip(rule.places, containers, strict=True):
            # A 64-bit difference on a 32-bit machine (RISC-V ADD64/SUB64) is a 64-bit number.
            bits = max(address_bits(self.isa), 8 * place.size)
            if rule.formula == "armcall" and container >> 28 == 0xF:
                # BLX reaches every second byte: bit 1 of the distance is bit 24 of the instruction.
                changed = place.insert(container & ~(1 << 24) | (value >> 1 & 1) << 24, value & ~2, bits)
            else:
                changed = place.insert(container, value, bits)
            raw = place.store(changed, not is_big_endian(self.isa))
            if not self.memory.patch(relocation.place + offset, raw):
                raise CannotApply("the place is not part of the file")
        self.applied += 1

    def _container(self, address: int, rule: Rule, index: int) -> int:
        place = rule.places[index][1]
        raw = self.memory.read(address, place.size)
        if raw is None:
            raise CannotApply("the place is not mapped")
        return place.load(raw, not is_big_endian(self.isa))

    def _implicit_addend(self, rule: Rule, container: int) -> int:
        if rule.formula.startswith("mov"):
            # Both halves of a MOVW/MOVT pair hold the whole addend as a signed 16-bit number.
            low = {44: 43, 46: 43, 48: 47, 50: 47}
            kind = next((low[k] for k, r in RULES[self.isa].items() if r is rule and k in low), None)
            return (RULES[self.isa][kind] if kind else rule).field.extract(container)
        return rule.field.extract(container)

    def _value(self, relocation: Relocation, rule: Rule, addend: int, container: int) -> int:
        place, formula = relocation.place, rule.formula
        match formula:
            case "rel":
                return self.bias + addend
            case "gotbase":
                return self._got() + addend - place
            case "got":
                return self._cell(relocation) + addend
            case "gotpc":
                return self._cell(relocation) + addend - place
            case "gotpage":
                return _page(self._cell(relocation) + addend) - _page(place)
            case "gotrel":
                return self._cell(relocation) + addend - self._got()
            case "got32x":
                mod_rm = self.memory.read(place - 1, 1)
                absolute = mod_rm is not None and mod_rm[0] & 0xC7 == 0x05
                return self._cell(relocation) + addend - (0 if absolute else self._got())
            case "mipsgot":
                return self._cell(relocation) - self._gp()
            case "pclow":
                symbol = self._symbol(relocation)
                if symbol + addend not in self._riscv_upper:
                    raise CannotApply("its HI20 partner is missing")
                return self._riscv_upper[symbol + addend]
        symbol = self._symbol(relocation)
        thumb = 1 if relocation.target.thumb else 0
        match formula:
            case "abs" | "mov" | "set":
                return symbol + addend
            case "absdata" | "movdata":
                return (symbol + addend) | thumb
            case "pc" | "movpc":
                return symbol + addend - place
            case "pcdata" | "movpcdata":
                return ((symbol + addend) | thumb) - place
            case "slot" | "slotdata":
                return (symbol + (relocation.addend or 0)) | (thumb if formula == "slotdata" else 0)
            case "page":
                return _page(symbol + addend) - _page(place)
            case "gotoff":
                return symbol + addend - self._got()
            case "add":
                return rule.field.extract(container) + symbol + addend
            case "sub":
                return rule.field.extract(container) - symbol - addend
            case "gprel":
                return symbol + addend - self._gp()
            case "ppcplt":
                # An addend of 0x8000 or more locates the caller's GOT for a PLT stub; the
                # call itself goes to S.
                return symbol + (addend if addend < 0x8000 else 0) - place
            case "mipsrel32":
                return addend + symbol if relocation.target.name else addend + self.bias
            case "mips26":
                return self._mips_jump(relocation, addend, symbol)
            case "armcall":
                return symbol + addend - place
            case "armjump":
                if relocation.target.thumb:
                    raise CannotApply("a branch between ARM and Thumb code needs a veneer")
                return symbol + addend - place
        raise CannotApply("unsupported type")

    def _symbol(self, relocation: Relocation) -> int:
        if relocation.target.address is None:
            raise CannotApply(relocation.target.why or "symbol not defined here")
        return relocation.target.address

    def _cell(self, relocation: Relocation) -> int:
        if relocation.cell is None:
            raise CannotApply("no global offset table here")
        return relocation.cell

    def _got(self) -> int:
        if self.got is None:
            raise CannotApply("no global offset table here")
        return self.got

    def _gp(self) -> int:
        if self.gp is None:
            raise CannotApply("no global pointer here")
        return self.gp

    def _mips_jump(self, relocation: Relocation, addend: int, symbol: int) -> int:
        region = relocation.place + 4 & 0xF0000000
        if relocation.target.local and relocation.addend is None:
            addend &= 0x0FFFFFFF
            target = symbol + addend
        else:
            target = symbol + addend
        if target & 0xF0000000 != region:
            raise CannotApply("the target is in another 256 MiB region")
        return target

    def _arm_call_mode(self, relocation: Relocation, instruction: int) -> int:
        """BL and BLX swap where the callee is in the other instruction set."""
        if relocation.target.thumb and instruction >> 24 == 0xEB:
            return 0xFA000000 | instruction & 0xFFFFFF
        if not relocation.target.thumb and instruction >> 25 == 0x7D:
            return 0xEB000000 | instruction & 0xFFFFFF
        if relocation.target.thumb and instruction >> 25 != 0x7D:
            raise CannotApply("a branch between ARM and Thumb code needs a veneer")
        return instruction

    def _thumb_branch(self, relocation: Relocation, rule: Rule, instruction: int) -> None:
        """BL/BLX/B.W: imm = S:I1:I2:imm10:imm11:0 with I = not (J xor S)."""
        sign = instruction >> 26 & 1
        i1, i2 = 1 ^ (instruction >> 13 & 1) ^ sign, 1 ^ (instruction >> 11 & 1) ^ sign
        implicit = sign << 24 | i1 << 23 | i2 << 22 | (instruction >> 16 & 0x3FF) << 12 | (instruction & 0x7FF) << 1
        if sign:
            implicit -= 1 << 25
        addend = implicit if relocation.addend is None else relocation.addend
        place = relocation.place
        to_arm = relocation.target.code and not relocation.target.thumb
        if rule.formula == "thumbcall":
            # Bit 12 set is BL (stay in Thumb), clear is BLX (to ARM, counted from the aligned place).
            instruction = instruction & ~(1 << 12) if to_arm else instruction | 1 << 12
            if to_arm:
                place &= ~3
        elif to_arm:
            raise CannotApply("a branch between ARM and Thumb code needs a veneer")
        value = self._symbol(relocation) + addend - place
        if not -(1 << 24) <= value < 1 << 24 or value & 1 or (to_arm and value & 3):
            raise CannotApply(f"{value:#x} is out of range")
        sign = value >> 24 & 1
        j1, j2 = 1 ^ (value >> 23 & 1) ^ sign, 1 ^ (value >> 22 & 1) ^ sign
        instruction = instruction & ~0x07FF2FFF | sign << 26 | (value >> 12 & 0x3FF) << 16
        instruction |= j1 << 13 | j2 << 11 | (value >> 1 & 0x7FF)
        self.memory.patch(relocation.place, rule.field.store(instruction, not is_big_endian(self.isa)))
        self.applied += 1

    def _waits_for_low(self, rule: Rule, relocation: Relocation) -> bool:
        if relocation.addend is not None:
            return False
        return rule.formula == "mipshi" or (rule.name == "GOT16" and relocation.target.local)

    def _apply_mips_pair(self, pending: list[Relocation], low: Relocation) -> None:
        """MIPS o32: a LO16 completes every HI16 (and local GOT16) before it that has the same symbol.

        The addend AHL is (AHI << 16) + signed ALO; `_gp_disp` means the distance from the HI16 to the global
        pointer.
        """
        rule = RULES[self.isa][low.type]
        partners = [hi for hi in pending if hi.target == low.target]
        pending[:] = [hi for hi in pending if hi.target != low.target]
        high_addend = 0
        for high in partners:
            high_rule = RULES[self.isa][high.type]
            try:
                high_addend = self._container(high.place, high_rule, 0) & 0xFFFF
                ahl = (high_addend << 16) + rule.field.extract(self._container(low.place, rule, 0))
                value = self._mips_address(high, ahl, high.place)
                if high_rule.name == "GOT16":
                    page = (value + 0x8000) & 0xFFFF0000
                    self.memory.patch(
                        self._cell(high), page.to_bytes(4, "big" if is_big_endian(self.isa) else "little")
                    )
                    value = self._cell(high) - self._gp()
                self._store(high, high_rule, value)
            except (CannotApply, DoesNotFit) as problem:
                self._give_up(high, high_rule, str(problem))
        try:
            low_addend = low.addend
            if low_addend is None:
                low_addend = (high_addend << 16) + rule.field.extract(self._container(low.place, rule, 0))
            self._store(low, rule, self._mips_address(low, low_addend, low.place - 4))
        except (CannotApply, DoesNotFit) as problem:
            self._give_up(low, rule, str(problem))

    def _mips_address(self, relocation: Relocation, addend: int, place: int) -> int:
        if relocation.target.name == "_gp_disp":
            return self._gp() + addend - place
        return self._symbol(relocation) + addend

    def _store(self, relocation: Relocation, rule: Rule, value: int) -> None:
        container = rule.field.insert(self._container(relocation.place, rule, 0), value, 32)
        self.memory.patch(relocation.place, rule.field.store(container, not is_big_endian(self.isa)))
        self.applied += 1


def _page(address: int) -> int:
    return address & ~0xFFF
