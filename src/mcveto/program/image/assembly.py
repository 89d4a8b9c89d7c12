"""Assembly text as a program: assembled into a relocatable object, which is then loaded like any other.

The assembler is clang's, from the ziglang package; it reads what gcc and clang write. Labels that assemblers usually
drop (`.L2`) are kept as names. Functions that the text does not define become imports of the object: calling one is not
modelled unless the spec says what it is (an input, an assumption, a halt, a target).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from mcveto.errors import InputFileError, UsageError
from mcveto.program.image.model import Image
from mcveto.program.image.request import LoadRequest

_TIMEOUT = 300
_TRIPLES = {
    "x86-32": ("x86-freestanding",),
    "x86-64": ("x86_64-freestanding",),
    "ppc32-be": ("powerpc-freestanding",),
    "ppc32-le": ("powerpcle-freestanding",),
    "arm": ("arm-freestanding-eabi", "-mcpu=generic+v7a"),
    "arm-be8": ("armeb-freestanding-eabi", "-mcpu=generic+v7a"),
    "aarch64": ("aarch64-freestanding",),
    "riscv32": ("riscv32-freestanding", "-mcpu=generic_rv32+m+a+c"),
    "riscv64": ("riscv64-freestanding", "-mcpu=generic_rv64+m+a+c"),
    "mips32-be": ("mips-freestanding-eabi", "-mcpu=mips32r2"),
    "mips32-le": ("mipsel-freestanding-eabi", "-mcpu=mips32r2"),
}
# What only occurs in the text of one instruction set, with the most specific first.
_HINTS = (
    ("ppc32-be", re.compile(r"^\s*(stwu|mflr|mtlr|lwz|lwzu|blr|rlwinm|cmpwi|cmplwi|cmpw|cmplw)\b", re.MULTILINE)),
    ("x86-64", re.compile(r"%(rax|rbx|rcx|rdx|rsp|rbp|rsi|rdi|rip|r8|r9|r1[0-5])\b|\b(rsp|rbp|rax|rip)\b")),
    ("x86-32", re.compile(r"%(eax|ebx|ecx|edx|esp|ebp|esi|edi)\b|\b(esp|ebp|eax)\b")),
)


def load(request: LoadRequest) -> Image:
    text = _without_comments(request.data.decode("utf-8", errors="replace"))
    isa = request.arch or _guess(text, request.path)
    if isa not in _TRIPLES:
        raise UsageError(f"{request.path}: there is no assembler for {isa}", f"one of {', '.join(_TRIPLES)}")
    assembled = _assemble(request, isa)
    from mcveto.program.image import elf

    inner = replace(request, data=assembled, arch=isa)
    image = elf.load(inner)
    symbols = {name: address for name, address in image.symbols.items() if not name.startswith(".Lline_table_start")}
    # The text is what the user has; the object's bytes follow from it.
    return replace(image, sha256=hashlib.sha256(request.data).hexdigest(), symbols=symbols)


def _guess(text: str, path: str) -> str:
    for isa, pattern in _HINTS:
        if pattern.search(text):
            return isa
    raise UsageError(f"{path}: assembly text does not name its machine", "give --arch, e.g. --arch ppc32-be")


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def without_debugging(data: bytes) -> bytes:
    """The text without line numbers and debug sections, which gcc writes in words that clang does not know (`.loc 1 2 3
    view .LVU4`). Lines keep their numbers."""
    if b".debug_" not in data and b".loc" not in data:
        return data
    kept: list[bytes] = []
    is_debugging, is_pushed = False, False
    for line in data.split(b"\n"):
        words = line.split(None, 2)
        first = words[0] if words else b""
        if first in (b".section", b".pushsection") and not is_pushed:
            is_debugging = len(words) > 1 and words[1].startswith((b".debug_", b'".debug_'))
            is_pushed = is_debugging and first == b".pushsection"
        elif first == b".popsection" and is_pushed:
            is_debugging = is_pushed = False
            first = b".loc"
        elif first in (b".text", b".data", b".bss", b".previous") and not is_pushed:
            is_debugging = False
        is_numbered = first == b".file" and len(words) > 1 and words[1].isdigit()
        kept.append(b"" if is_debugging or first == b".loc" or is_numbered else line)
    return b"\n".join(kept)


# gcc's words for clang's, in text that says `.intel_syntax`.
_INTEL = (
    (re.compile(rb"\bOFFSET FLAT:"), rb"OFFSET "),
    (
        re.compile(rb"^(\s*(?:\w+:)?\s*(?:notrack\s+)?(?:jmp|call)\s+)\[([DQ]WORD PTR .*)\](\s*(?:#.*)?)$", re.M),
        rb"\1\2\3",
    ),
    (re.compile(rb"^(\s*(?:\w+:)?\s*)movsx(\s+r[\w]+,\s*(?:DWORD PTR|e[a-z][a-z]\b|r\d+d\b))", re.M), rb"\1movsxd\2"),
)


# In sections whose contents a linker may merge, no labels are kept.
_MERGEABLE = re.compile(rb'^(\s*\.section\s+[^,\n]+,\s*"[a-zA-Z]*?)MS?([a-zA-Z]*",\s*[@%]progbits),\s*\d+', re.M)


# `r3` for `%r3` or `3`, as handwritten PowerPC has it (GNU's -mregnames); neither part of a name nor a macro's `\r3`.
_REGISTER = re.compile(rb"(?<![%\w.$@\\])[rf](?:[12]?\d|3[01])(?![\w.$@:])")
_DIRECTIVE = re.compile(rb"\s*(?:[\w.$]+:\s*)*(?:\.(?![\w.$]*:)|#|[\w.$]+\s*=)")
_REGISTER_NUMBER = re.compile(rb"^\s*(?:\.(?:set|equ)\s+([rf]\d+)\s*,|([rf]\d+)\s*=)\s*(\d+)\s*(?:[#;/].*)?$", re.M)
_OTHERWISE_DEFINED = re.compile(
    rb"^\s*(?:([rf]\d+):|\.(?:set|equ|comm|lcomm|globl|global|extern|type)\s+([rf]\d+)\b|([rf]\d+)\s*=|#\s*define\s+([rf]\d+)\b)",
    re.M,
)


def with_percent_signs(data: bytes) -> bytes:
    """PowerPC text in which bare names of registers are such. A name that the text gives a number is that number's; one
    that it defines as anything else is left alone."""
    numbers = {one or other: number for one, other, number in _REGISTER_NUMBER.findall(data)}
    taken = {name for names in _OTHERWISE_DEFINED.findall(data) for name in names if name} - numbers.keys()

    def renamed(match: re.Match[bytes]) -> bytes:
        name = match[0]
        return name if name in taken else b"%" + name[:1] + numbers.get(name, name[1:])

    return b"\n".join(line if _DIRECTIVE.match(line) else _REGISTER.sub(renamed, line) for line in data.split(b"\n"))


def in_clangs_words(data: bytes, isa: str) -> bytes:
    """The text with what gcc and clang say differently as clang says it."""
    data = _MERGEABLE.sub(rb"\1\2", data)
    # Text that includes another gets the names of its registers from there, most likely.
    if isa.startswith("ppc") and not re.search(rb"^\s*#\s*include\b", data, re.M):
        data = with_percent_signs(data)
    if b".intel_syntax" in data:
        for pattern, replacement in _INTEL:
            data = pattern.sub(replacement, data)
    return data


def _assemble(request: LoadRequest, isa: str) -> bytes:
    if importlib.util.find_spec("ziglang") is None:
        raise InputFileError(
            f"{request.path}: assembly text needs an assembler", "pip install ziglang==0.17.0 provides one"
        )
    with tempfile.TemporaryDirectory(prefix="mcveto-") as scratch:
        source = Path(scratch) / f"text{'.S' if request.path.endswith('.S') else '.s'}"
        output = Path(scratch) / "text.o"
        source.write_bytes(in_clangs_words(without_debugging(request.data), isa))
        folder = Path(request.path).resolve().parent
        triple, *flags = _TRIPLES[isa]
        command = [sys.executable, "-m", "ziglang", "cc", "-target", triple, *flags]
        command += ["-Wa,-L", "-Wno-unused-command-line-argument", "-I", str(folder)]
        command += ["-c", str(source), "-o", str(output)]
        caches = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), scratch)
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, **caches},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputFileError(f"{request.path}: the assembler failed: {error}") from None
        if done.returncode != 0 or not output.exists():
            raise InputFileError(f"{request.path}: {_complaint(done.stderr, source)}", f"assembled as {isa}")
        return output.read_bytes()


def _complaint(errors: str, source: Path) -> str:
    """The assembler's first error as one line."""
    for line in errors.splitlines():
        if "error:" in line:
            place, _, what = line.partition("error:")
            number = re.search(r":(\d+):", place.replace(str(source), ""))
            return f"line {number[1]}: {what.strip()}" if number else what.strip()
    return "the assembler failed"
