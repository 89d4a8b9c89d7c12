"""A gdb script that brings a process into the entry state of a counterexample and stops it at the violation.

Plain gdb commands, for x86 programs that the kernel runs (see `native_follower` for which those are): the stack is
mapped by a system call made in the process's name, inputs are answered at breakpoints. Where code is writable the
breakpoints are hardware ones, because the others are themselves a modification of code. Library models do in one go, at
a breakpoint, what they did to registers and memory; a violation inside one stops where it is entered.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcveto.check.counterexample import SAFETY
from mcveto.check.recording import Recording

_HARDWARE_BREAKPOINTS = 4
_FLAG_BITS = {"CF": 0, "PF": 2, "AF": 4, "ZF": 6, "SF": 7, "DF": 10, "OF": 11}
_ALWAYS_SET = 0x202
_MMAP = {
    "x86-64": (0x050F, 9, ("rdi", "rsi", "rdx", "r10", "r8", "r9")),
    "x86-32": (0x80CD, 192, ("ebx", "ecx", "edx", "esi", "edi", "ebp")),
}


def gdb_script(recording: Recording) -> str | None:
    """The script, or None for a program that cannot be run as a process here."""
    image = recording.program.image
    if image.isa not in _MMAP or image.format != "elf":
        return None
    return "\n".join(_lines(recording)) + "\n"


def _lines(recording: Recording) -> Iterator[str]:
    program, violation = recording.program, recording.violation
    isa, row = program.image.isa, program.decoder.row
    wide = row.address_bits == 64
    word = "unsigned long" if wide else "unsigned int"
    stack_pointer, result = ("$rsp", "$rax") if wide else ("$esp", "$eax")
    yield f"# Stops at the violation of {violation.about}: {violation.detail}."
    yield from ("set pagination off", "set confirm off", "set disable-randomization on", "starti < /dev/null")
    yield ""
    entry = row.code_address(program.entry)
    call, number, where = _MMAP[isa]
    for region in recording.initial.memory.regions:
        if any(part.address < region.end and region.start < part.end for part in program.image.segments):
            continue
        yield f"# The {region.name} of the entry state, mapped by a system call."
        yield f"set $saved = *(unsigned short *){entry:#x}"
        yield f"set {{unsigned short}}{entry:#x} = {call:#x}"
        yield f"set $pc = {entry:#x}"
        arguments = (region.start, region.end - region.start, 3, 0x32, -1, 0)
        yield from (f"set ${name} = {value}" for name, value in zip(where, arguments, strict=True))
        yield f"set {result} = {number}"
        yield "stepi"
        yield f"set {{unsigned short}}{entry:#x} = $saved"
    yield ""
    yield "# The entry state."
    for name in row.general:
        yield f"set ${name.lower()} = {recording.initial.registers.get(name, 0):#x}"
    flags = sum(recording.initial.registers.get(name, 0) << bit for name, bit in _FLAG_BITS.items())
    yield f"set $eflags = {flags | _ALWAYS_SET:#x}"
    if row.pushes_return_address:
        yield f"set {{{word}}}{stack_pointer} = {program.return_sentinel:#x}"
    for address, value in recording.initial.bytes:
        yield f"set {{unsigned char}}{address:#x} = {value:#x}"
    yield f"set $pc = {program.entry:#x}"
    yield ""
    yield from _stops(recording, result, stack_pointer, word)


def _stops(recording: Recording, result: str, stack_pointer: str, word: str) -> Iterator[str]:
    program, violation = recording.program, recording.violation
    hooks = sorted({visit.pc for visit in recording.calls})
    last, visits = recording.stop
    writable = any(region.permissions & 3 == 3 for region in program.space.regions)
    kind = "hbreak" if writable and len(hooks) + 1 <= _HARDWARE_BREAKPOINTS else "break"
    yield "# Functions that the spec replaces return what the counterexample says."
    yield from (f"{kind} *{address:#x}" for address in (*hooks, *(() if last in hooks else (last,))))
    yield f"set $visits = {visits}"
    yield "set $answers = 0"
    yield "set $going = 1"
    if program.entry in hooks or program.entry == last:
        # gdb does not stop at a breakpoint it starts from.
        yield "set $started = 0"
    else:
        yield "set $started = 1"
    yield "while $going"
    yield "  if $started"
    yield "    continue"
    yield "  end"
    yield "  set $started = 1"
    yield f"  if $pc == {last:#x}"
    yield "    if $visits == 0"
    yield "      set $going = 0"
    yield "    end"
    yield "    set $visits = $visits - 1"
    yield "  end"
    if hooks:
        yield "  set $here = $pc"
        condition = " || ".join(f"$here == {address:#x}" for address in hooks)
        yield f"  if $going && ({condition})"
        known = program.decoder.row.general
        for number, visit in enumerate(recording.calls):
            changes = [
                item for item in visit.changes if item[0] in known and item[0] != program.decoder.row.stack_pointer
            ]
            if changes or visit.writes:
                yield f"    if $answers == {number}"
                yield from (f"      set ${name.lower()} = {value:#x}" for name, value in changes)
                for address, content in visit.writes:
                    yield from (
                        f"      set {{unsigned char}}{address + at:#x} = {byte:#x}" for at, byte in enumerate(content)
                    )
                yield "    end"
        yield "    set $answers = $answers + 1"
        yield f"    set $pc = *({word} *){stack_pointer}"
        yield f"    set {stack_pointer} = {stack_pointer} + {program.decoder.row.address_bytes}"
        yield "    # Continuing from a breakpoint would pass it unseen."
        yield "    set $started = 1"
        stops = " || ".join(f"$pc == {address:#x}" for address in (*hooks, last))
        yield f"    if {stops}"
        yield "      set $started = 0"
        yield "    end"
        yield "  end"
    yield "end"
    if violation.about == "return-address":
        yield f"echo \\nThe return at {last:#x} goes to:\\n"
        yield "x/i $pc"
        yield "stepi"
        yield "p/x $pc"
    if violation.about in SAFETY:
        yield f"x/i {last:#x}" if recording.unfinished is None else "echo \\nThe call comes from:\\n"
        if recording.unfinished is not None:
            yield f"p/x *({word} *){stack_pointer}"
    yield f"echo \\n{violation.about} is violated: {violation.detail}\\n"
    yield "info registers"
    yield f"if $pc == {violation.pc if recording.unfinished is None else last:#x}"
    yield "  echo REPRODUCED\\n"
    yield "  kill"
    yield "  quit 0"
    yield "end"
    yield "echo NOT REPRODUCED\\n"
    yield "kill"
    yield "quit 1"
