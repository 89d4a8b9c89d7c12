"""Random C programs without undefined behaviour, so that a native run of every input is the truth for every build.

Arithmetic is unsigned or wraps (-fwrapv), shifts and indices are masked, divisors are odd, loops and recursion have
bounds that the program's text gives. A program reads at most two inputs and calls `hit` under some conditions.
What the programs look like after a compiler's work is not under our control: that is the point of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable

MAX_INPUTS = 2
TYPES = ("unsigned char", "signed char", "unsigned short", "short", "unsigned", "int")
HELPERS = """
static unsigned table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
static unsigned char bytes[16];
struct pair { unsigned short low; unsigned char tag; int high; };
static struct pair pairs[4];
void *memcpy(void *to, const void *from, __SIZE_TYPE__ size) {
  for (__SIZE_TYPE__ i = 0; i < size; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
  return to;
}
void *memset(void *to, int value, __SIZE_TYPE__ size) {
  for (__SIZE_TYPE__ i = 0; i < size; i++) ((volatile char *)to)[i] = (char)value;
  return to;
}
static void reset(void) {
  static const unsigned start[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  for (int i = 0; i < 8; i++) table[i] = start[i];
  for (int i = 0; i < 16; i++) bytes[i] = 0;
  for (int i = 0; i < 4; i++) pairs[i].low = 0, pairs[i].tag = 0, pairs[i].high = 0;
}
"""


class _Writer:
    """One program: its variables, the functions it may call, and how much more it may grow."""

    def __init__(self, generator: random.Random, number: int) -> None:
        self.random = generator
        self.number = number
        self.helpers: list[str] = []
        self.finished: list[str] = []
        self.called = 0
        self.loops = 0
        self.budget = generator.randint(6, 16)

    def pick(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def constant(self) -> str:
        small = self.random.choice((0, 1, 2, 3, 5, 7, 8, 15, 16, 100, 127, 128, 200, 255))
        return str(self.random.choice((small, small, small, self.random.randrange(1 << 16)))) + "u"

    def value(self, names: list[str], depth: int = 2) -> str:
        """An expression of type unsigned."""
        if depth == 0 or self.random.random() < 0.25:
            return f"(unsigned){self.random.choice(names)}" if self.random.random() < 0.75 else self.constant()
        a = self.value(names, depth - 1)
        b = self.value(names, depth - 1)
        return self.pick(
            lambda: f"({a} {self.random.choice('+-*^&|')} {b})",
            lambda: f"({a} {self.random.choice('+-')} {self.constant()})",
            lambda: f"({a} << ({b} & 7))",
            lambda: f"({a} >> ({b} & 15))",
            lambda: f"(unsigned)((int){a} >> ({b} & 7))",
            lambda: f"({a} / ({b} | 1))",
            lambda: f"({a} % ({b} | 1))",
            lambda: f"(unsigned)((int)({a} & 0xffff) / (int)(({b} & 0xff) + 1))",
            lambda: f"({self.condition(names, depth - 1)} ? {a} : {b})",
            lambda: f"table[{a} & 7]",
            lambda: f"(unsigned)bytes[{a} & 15]",
            lambda: f"(unsigned)pairs[{a} & 3].{self.random.choice(('low', 'tag', 'high'))}",
            lambda: f"(unsigned)({self.random.choice(TYPES)}){a}",
            lambda: f"(unsigned)(((unsigned long long){a} * 3 + {b}) >> {self.random.randint(1, 31)})",
            lambda: self.call(a, b) if self.called < 3 else a,
        )

    def condition(self, names: list[str], depth: int = 2) -> str:
        a = self.value(names, depth - 1 if depth else 0)
        b = self.value(names, 0)
        sign = self.random.choice(("==", "!=", "<", "<=", ">", ">="))
        return self.pick(
            lambda: f"{a} {sign} {b}",
            lambda: f"(int){a} {sign} (int){b}",
            lambda: f"({a} & {1 << self.random.randrange(8)}) != 0",
            lambda: f"({a} & {self.random.choice((1, 3, 7))}) {sign} {self.random.randrange(4)}",
            lambda: f"({a} > {self.constant()} && {b} {sign} {self.constant()})",
            lambda: f"({a} < {self.constant()} || {b} {sign} {self.constant()})",
        )

    def call(self, a: str, b: str) -> str:
        """A call of a new or known helper; a helper calls only those that were written before it."""
        self.called += 1
        if self.finished and self.random.random() < 0.4:
            return f"{self.random.choice(self.finished)}({a}, {b})"
        name = f"h{self.number}_{self.called}"
        names = ["x", "y"]
        kind = self.random.randrange(4)
        if kind == 0:
            body = f"return (x & 7) == 0 ? {self.value(names, 1)} : {name}((x & 7) - 1, {self.value(names, 1)}) + y;"
        elif kind == 1:
            arms = " ".join(f"case {n}: return {self.value(names, 1)};" for n in range(self.random.randint(3, 7)))
            body = f"switch (x & 7) {{ {arms} default: break; }} return {self.value(names, 1)};"
        elif kind == 2:
            body = f"table[x & 7] = {self.value(names, 1)}; bytes[y & 15] = (unsigned char)x; return table[y & 7];"
        else:
            body = f"unsigned *p = {self.condition(names, 1)} ? &x : &y; *p {self.random.choice(('+=', '^=', '='))} "
            body += f"{self.value(names, 1)}; return x - y;"
        inline = self.random.choice(("__attribute__((noinline)) ", ""))
        self.helpers.append(f"static {inline}unsigned {name}(unsigned x, unsigned y) {{ {body} }}")
        self.finished.append(name)
        return f"{name}({a}, {b})"

    def statement(self, names: list[str], depth: int) -> str:
        self.budget -= 1
        target = self.random.choice(names)
        if depth == 0 or self.budget <= 0:
            return f"{target} = {self.value(names)};"

        def block() -> str:
            return "{ " + " ".join(self.statement(names, depth - 1) for _ in range(self.random.randint(1, 2))) + " }"

        def counted() -> str:
            self.loops += 1
            i = f"i{self.loops}"
            bound = self.random.choice((f"({self.value(names, 1)} & 7)", str(self.random.randint(2, 9))))
            leave = f" if ({self.condition(names, 1)}) {self.random.choice(('break', 'continue'))};"
            return f"for (unsigned {i} = 0, n{i} = {bound}; {i} < n{i}; {i}++) {{{leave} {block()[1:]}"

        def while_loop() -> str:
            self.loops += 1
            f = f"f{self.loops}"
            return f"{{ int {f} = 6; while ({self.condition(names, 1)} && {f}-- > 0) {block()} }}"

        return self.pick(
            lambda: f"{target} = {self.value(names)};",
            lambda: f"{target} {self.random.choice(('+=', '-=', '^=', '|=', '&='))} {self.value(names, 1)};",
            lambda: f"if ({self.condition(names)}) {block()}",
            lambda: f"if ({self.condition(names)}) {block()} else {block()}",
            counted,
            while_loop,
            lambda: f"table[{self.value(names, 1)} & 7] = {self.value(names, 1)};",
            lambda: f"bytes[{self.value(names, 1)} & 15] = (unsigned char){self.value(names, 1)};",
            lambda: (
                f"pairs[{self.value(names, 1)} & 3].{self.random.choice(('low', 'tag', 'high'))} = {self.constant()};"
            ),
            lambda: f"pairs[{self.value(names, 1)} & 3] = pairs[{self.value(names, 1)} & 3];",
            lambda: f"{{ unsigned *p = &table[{self.value(names, 1)} & 7]; *p += {self.constant()}; }}",
            lambda: f"if ({self.condition(names)}) hit();",
        )

    def program(self) -> str:
        types = [self.random.choice(TYPES) for _ in range(self.random.randint(1, 3))]
        names = [f"v{n}" for n in range(len(types))]
        inputs = self.random.randint(1, MAX_INPUTS)
        lines = ["reset();"]
        for place, (kind, name) in enumerate(zip(types, names, strict=True)):
            start = "input()" if place < inputs else self.constant()
            lines.append(f"{kind} {name} = ({kind}){start};")
        for _ in range(self.random.randint(1, 4)):
            lines.append(self.statement(names, 2))
        mask = self.random.choice((1, 3, 15, 63, 255, 1023))
        lines.append(f"if (({self.value(names)} & {mask}) == {self.random.randrange(mask + 1)}) hit();")
        body = "\n  ".join(lines)
        helpers = "\n".join(self.helpers)
        return f"{helpers}\nvoid program{self.number}(void) {{\n  {body}\n}}\n"


def random_c(seed: int, count: int) -> str:
    """`count` programs in one file; they share the functions `input` and `hit`, which are given elsewhere."""
    generator = random.Random(seed)
    head = "unsigned input(void);\nvoid hit(void);\n" + HELPERS
    return head + "\n".join(_Writer(generator, number).program() for number in range(count))
