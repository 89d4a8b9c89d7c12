"""A few lines of textual P-code, as the overlay files and hooks write it.

    %sum:8 = INT_ADD $in0, $in1      temporary of 8 bytes; later uses may omit the size
    CF = INT_NOTEQUAL %sum, 0:8      register by name; constant 0 of 8 bytes
    %wide:$dst = INT_ZEXT %bit       as many bytes as the bound varnode $dst has
    %any:1 = FRESH 0:1               any byte, usually 0 (a flag is the lowest bit of it: mask it)
    TRAP divide-error, %zero         the run ends with this fault if %zero is not 0
    CBRANCH @done, %c                jumps to label @done; a line `@done` defines it
    %mask:8 = INT_SUB size.dst:8, 1:8    size.dst is how many bytes $dst has

`$name` is a varnode bound by the caller. Extending to the same size is a copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..faults import FaultKind
from ..pcode import FreshOrigin, Op, Space, Varnode

# Far above any offset SLEIGH allocates, so that snippets never collide with an instruction's own temporaries.
TEMPORARY_BASE = 1 << 40
_TEMPORARY_STRIDE = 64

_OPERAND = re.compile(r"(?P<base>[%$]?[\w.]+|-?\d+)(?::(?P<size>\d+|\$\w+))?")


class SnippetError(ValueError):
    """The text is not P-code, or does not fit the varnodes bound to it."""


class SnippetAssembler:
    def __init__(self, register: Callable[[str], Varnode | None]) -> None:
        self._register = register

    def assemble(self, text: str, bound: Mapping[str, Varnode], first_temporary: int = 0) -> list[Op]:
        """The operations `text` denotes, with relative branches resolved within the snippet."""
        temporaries: dict[str, Varnode] = {}
        lines = [line.split("#", 1)[0].strip() for line in text.strip().splitlines()]
        lines = [line for line in lines if line]
        labels: dict[str, int] = {}
        code: list[str] = []
        for line in lines:
            if line.startswith("@"):
                labels[line[1:]] = len(code)
            else:
                code.append(line)

        def operand(token: str) -> Varnode:
            match = _OPERAND.fullmatch(token.strip())
            if match is None:
                raise SnippetError(f"cannot read operand {token!r}")
            base, size_text = match["base"], match["size"]
            size = self._size(size_text, bound)
            if base.startswith("$"):
                if base[1:] not in bound:
                    raise SnippetError(f"{base} is not bound")
                return bound[base[1:]]
            if base.startswith("%"):
                known = temporaries.get(base)
                if known is None:
                    if size is None:
                        raise SnippetError(f"{base} is used before its size is given")
                    offset = TEMPORARY_BASE + _TEMPORARY_STRIDE * (first_temporary + len(temporaries))
                    known = temporaries[base] = Varnode(Space.UNIQUE, offset, size)
                elif size is not None and size != known.size:
                    raise SnippetError(f"{base} changes its size")
                return known
            if base.startswith("size."):
                if size is None or base.removeprefix("size.") not in bound:
                    raise SnippetError(f"{base} needs a size and a bound varnode")
                return Varnode(Space.CONST, bound[base.removeprefix("size.")].size, size)
            if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", base):
                if size is None:
                    raise SnippetError(f"constant {base} needs a size")
                return Varnode(Space.CONST, int(base, 0) & ((1 << 8 * size) - 1), size)
            found = self._register(base)
            if found is None:
                raise SnippetError(f"no register is called {base}")
            return found

        ops: list[Op] = []
        for index, line in enumerate(code):
            target, _, rest = line.rpartition("=") if "=" in line else ("", "", line)
            opcode, _, tail = rest.strip().partition(" ")
            tokens = [token.strip() for token in tail.split(",")] if tail.strip() else []
            if opcode == "TRAP":
                kind = Varnode(Space.CONST, FaultKind.of_label(tokens[0]), 1)
                ops.append(Op("TRAP", None, (kind, operand(tokens[1]))))
            elif tokens and tokens[0].startswith("@"):
                jump = Varnode(Space.CONST, (labels[tokens[0][1:]] - index) & 0xFFFFFFFF, 4)
                ops.append(Op(opcode, None, (jump, *map(operand, tokens[1:]))))
            else:
                inputs = tuple(operand(token) for token in tokens)
                if opcode == "FRESH" and len(inputs) == 1:
                    inputs = (*inputs, Varnode(Space.CONST, FreshOrigin.UNDEFINED, 1))
                output = operand(target) if target else None
                if opcode == "FRESH" and output is not None and inputs[0].size != output.size:
                    raise SnippetError(f"sizes differ in {line!r}")
                if opcode == "SUBPIECE" and output is not None and inputs[1].offset + output.size > inputs[0].size:
                    raise SnippetError(f"more bytes than there are in {line!r}")
                if opcode in ("INT_ZEXT", "INT_SEXT") and output is not None and inputs[0].size == output.size:
                    opcode = "COPY"
                ops.append(Op(opcode, output, inputs))
        return ops

    @staticmethod
    def _size(text: str | None, bound: Mapping[str, Varnode]) -> int | None:
        if text is None:
            return None
        if text.startswith("$"):
            return bound[text[1:]].size
        return int(text)
