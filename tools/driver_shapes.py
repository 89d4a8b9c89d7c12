"""More shapes of large drivers: devices behind tables of functions, nested locks, rings, commands by name, recursion.

`large_driver` writes handlers that get words; these get devices. A handler reads what it needs from the device, through
a pointer that nobody can know beforehand, and again when it releases the lock; in between it writes to the same device,
copies memory, compares names and calls others. Kinds: `table` (every device has a table of operations, and requests go
through it), `nested` (two locks, released in the opposite order on every way out), `ring` (requests in a ring that is
worked off in a loop, commands by name), `bus` (devices behind bridges, looked through by a function that calls itself),
`layers` (one function takes the lock and says so, another one releases it if told).
"""

from __future__ import annotations

import random
from collections.abc import Callable

KINDS = ("table", "nested", "ring", "bus", "layers")
DEVICES = 12
OPERATIONS = ("open", "read", "write", "control")

HEAD = """#include "air.h"
#define OPAQUE __attribute__((noinline))
struct device;
struct operations { int (*open)(struct device *, word); int (*read)(struct device *, word);
  int (*write)(struct device *, word); int (*control)(struct device *, word); };
struct device { word flags, state, count; const struct operations *ops; word data[6]; byte name[8]; word last; };
struct device devices[12];
word ring[32], head, tail, errors, table_of_words[64], inner_held;
byte text[64];
OPAQUE void inner_lock(void) { if (inner_held) reached(); inner_held = 1; }
OPAQUE void inner_unlock(void) { if (!inner_held) reached(); inner_held = 0; }
OPAQUE word sum(const word *from, word count) { word all = 0; while (count--) all += *from++; return all; }
OPAQUE void copy(byte *to, const byte *from, word count) { while (count--) *to++ = *from++; }
OPAQUE int same(const byte *a, const char *b) { while (*b) { if (*a++ != (byte)*b++) return 0; } return 1; }
OPAQUE word mix(word a, word b) { a ^= b << 7; a += b >> 3; return a > b ? a - b : a * 5u; }
"""

LOCKS = (("spin_lock();", "spin_unlock();"), ("spin_lock_irq();", "spin_unlock_irq();"),
         ("saved = spin_lock_irqsave();", "spin_unlock_irqrestore(saved);"))  # fmt: skip


class Operation:
    """The text of one operation of a device."""

    def __init__(self, name: str, kind: str, draw: random.Random, statements: int, is_wrong: bool) -> None:
        self.name, self.kind, self.draw, self.statements, self.is_wrong = name, kind, draw, statements, is_wrong
        self.lock, self.unlock = draw.choice(LOCKS)

    def text(self) -> str:
        common: list[Callable[[], list[str]]] = [self._flag, self._errors, self._early, self._retry]
        own = {"nested": self._nested, "ring": self._named, "layers": self._layers}.get(self.kind, self._flag)
        body = self.draw.choice([own, own, *common])()
        return "\n".join([
            f"OPAQUE int {self.name}(struct device *dev, word arg) {{",
            "  word saved = 0, value = arg ^ dev->count, i = 0; int err = 0;",
            *(f"  {line}" for line in body), "  (void)saved, (void)i;", "  dev->last = value;", "  return err;", "}",
        ])  # fmt: skip

    def _fill(self, share: float = 1.0) -> list[str]:
        draw, lines = self.draw, []
        for _ in range(max(int(self.statements * share), 1)):
            number, place = draw.randrange(1, 1 << 16), draw.randrange(6)
            lines.append(
                draw.choice(
                    [
                        f"value = value * {number | 1}u + dev->data[{place}];",
                        f"dev->data[{place}] = value ^ {number}u;",
                        "dev->count++;",
                        f"table_of_words[(value + {number}u) & 63u] = arg;",
                        f"value += table_of_words[arg & 63u] & {number}u;",
                        f"if (value > {number}u) value -= arg; else dev->data[{place}] = {number}u;",
                        "value = mix(value, arg);",
                        f"text[(value >> {draw.randrange(8)}) & 63u] = (byte)arg;",
                        f"if ((arg & {1 << draw.randrange(16)}u) && dev->count != {number}u) errors++;",
                        f"dev->data[(value + {number}u) % 6u] = arg;",
                        "value ^= sum(dev->data, 6);",
                        f"for (i = 0; i < {draw.randrange(2, 6)}u; i++) value += dev->data[i];",
                        "copy(dev->name, text, 8);",
                        f"switch (arg & 3u) {{ case 0: value += {number}u; break; case 1: value ^= arg; break; "
                        f"default: dev->data[{place}]--; }}",
                    ]
                )
            )
        return lines

    def _flag(self) -> list[str]:
        bit = self.draw.randrange(1, 12)
        second = f"dev->flags & {1 << bit + 1}u" if self.is_wrong else f"(dev->flags >> {bit}) & 1u"
        return [*self._fill(0.3), f"if (dev->flags & {1 << bit}u) {{ {self.lock} }}", *self._fill(0.4),
                f"if ({second}) {{ {self.unlock} }}", *self._fill(0.3)]  # fmt: skip

    def _errors(self) -> list[str]:
        limit, magic = self.draw.randrange(8, 64), self.draw.randrange(4096)
        lines = [f"if (arg == {magic}u) return -22;", self.lock, *self._fill(0.3)]
        lines += [f"if (value % {limit}u == 3u) {{ err = -5; goto out; }}", *self._fill(0.3)]
        lines += [f"if (dev->state == {magic}u) {{ err = -16; {'return err' if self.is_wrong else 'goto out'}; }}"]
        return [*lines, *self._fill(0.3), "out:", self.unlock]

    def _early(self) -> list[str]:
        lines = [*self._fill(0.2), self.lock, f"if (!(arg & {1 << self.draw.randrange(20)}u)) {{", *self._fill(0.2)]
        lines += [f"  {self.unlock}"] + ([] if self.is_wrong else ["  return 1;"]) + ["}"]
        return [*lines, *self._fill(0.4), self.unlock]

    def _retry(self) -> list[str]:
        lines = [*self._fill(0.2), "again:", self.lock, *self._fill(0.3), "if (choice() & 4) {"]
        if not self.is_wrong:
            lines.append(f"  {self.unlock}")
        return [*lines, "  goto again;", "}", *self._fill(0.3), self.unlock]

    def _nested(self) -> list[str]:
        limit = self.draw.randrange(8, 100)
        lines = [self.lock, *self._fill(0.2), f"if (arg < {limit}u) {{ err = -1; goto outer; }}", "inner_lock();"]
        lines += [*self._fill(0.3), "if (choice() > 7) { err = -2; goto inner; }", *self._fill(0.3)]
        lines += [f"if (dev->state & 64u) {{ err = -3; goto {'outer' if self.is_wrong else 'inner'}; }}"]
        return [*lines, "dev->state |= 1u;", "inner:", "inner_unlock();", "outer:", self.unlock]

    def _named(self) -> list[str]:
        word = self.draw.choice(["reset", "start", "stop", "flush", "sync"])
        lines = ["word slow;", f'slow = (word)same(dev->name, "{word}");', *self._fill(0.3)]
        lines += [f"if (slow) {{ {self.lock} }}", *self._fill(0.3)]
        second = f'same(dev->name, "{word[:2]}")' if self.is_wrong else "slow == 1"
        return [*lines, f"if ({second}) {{ {self.unlock} }}", *self._fill(0.3)]

    def _layers(self) -> list[str]:
        second = "taken >= 0" if self.is_wrong else "taken > 0"
        return ["int taken;", *self._fill(0.2), "taken = begin(dev, arg);", "if (taken < 0) return taken;",
                *self._fill(0.5), f"if ({second}) finish(dev);", *self._fill(0.2)]  # fmt: skip


def program(seed: int, statements: int, kind: str, is_wrong: bool) -> str:
    """The C text of a driver with about so many statements."""
    draw = random.Random(f"shape {seed} {kind}")
    size = draw.choice([12, 25, 50])
    count = max(statements // size, 8)
    wrong = draw.randrange(count // 2, count)
    lines = [HEAD]
    if kind == "layers":
        lines += [
            "OPAQUE int begin(struct device *dev, word arg) { if (arg > 4096u) return -22;",
            "  if (dev->flags & 8u) return 0; spin_lock(); dev->state = arg; return 1; }",
            "OPAQUE void finish(struct device *dev) { dev->count++; spin_unlock(); }",
        ]
    names = [f"{kind}_{OPERATIONS[number % 4]}_{number}" for number in range(count)]
    for number, name in enumerate(names):
        own = random.Random(f"operation {seed} {kind} {number}")
        lines += ["", Operation(name, kind, own, size, is_wrong and number == wrong).text()]
    lines += ["", *_callers(kind, names)]
    return "\n".join(lines) + "\n"


def _tables(names: list[str]) -> list[str]:
    groups = [names[start : start + 4] for start in range(0, len(names), 4)]
    groups[-1] = (groups[-1] * 4)[:4]
    rows = ", ".join("{" + ", ".join(group) + "}" for group in groups)
    return [f"static const struct operations all_operations[{len(groups)}] = {{{rows}}};"]


def _callers(kind: str, names: list[str]) -> list[str]:
    start = ["void program(void) {", "  word i;", f"  for (i = 0; i < {DEVICES}u; i++) {{"]
    start += ["    devices[i].flags = (word)choice(); devices[i].state = (word)choice();"]
    if kind == "ring":
        start += ["    { word letters = (word)choice(); copy(devices[i].name, (const byte *)&letters, 4); }"]
        start += ["    { word letters = (word)choice(); copy(devices[i].name + 4, (const byte *)&letters, 4); }"]
    if kind == "table":
        tables = len(_split(names))
        start += [f"    devices[i].ops = &all_operations[(word)choice() % {tables}u];"]
    start += ["  }"]
    call = "(&devices[(word)choice() % 12u], (word)choice())"
    if kind == "table":
        ways = [f"      case {number}: dev->ops->{name}(dev, (word)choice()); break;"
                for number, name in enumerate(OPERATIONS)]  # fmt: skip
        return [*_tables(names), *start, "  while (choice()) {",
                "    struct device *dev = &devices[(word)choice() % 12u];",
                "    switch (choice() & 3) {", *ways, "    }", "  }", "}"]  # fmt: skip
    if kind == "ring":
        pointers = ", ".join(names)
        return [f"static int (*const commands[{len(names)}])(struct device *, word) = {{{pointers}}};", *start,
                "  for (;;) {", "    if (choice() & 1) { ring[tail++ & 31u] = (word)choice(); }",
                "    else if (head != tail) {", "      word request = ring[head++ & 31u];",
                f"      commands[request % {len(names)}u](&devices[(request >> 8) % 12u], request);",
                "    } else break;",
                "  }", "}"]  # fmt: skip
    if kind == "bus":
        lines = []
        groups = [names[begin : begin + 8] for begin in range(0, len(names), 8)]
        for number, group in enumerate(groups):
            lines += [f"OPAQUE int probe_{number}(struct device *dev, word arg) {{ int err = 0;"]
            lines += [f"  if (!err && (arg & {1 << place}u)) err = {name}(dev, arg >> {place});"
                      for place, name in enumerate(group)]  # fmt: skip
            lines += ["  return err; }"]
        lines += ["OPAQUE void scan(struct device *dev, word depth) {", "  word way;", "  if (depth == 0) return;",
                  "  way = (word)choice();"]  # fmt: skip
        lines += [f"  if (way == {number}u) probe_{number}(dev, (word)choice());" for number in range(len(groups))]
        return [*lines, "  if (way & 1u) scan(&devices[way % 12u], depth - 1);", "}", *start, "  while (choice())",
                "    scan(&devices[0], (word)choice() & 7u);", "}"]  # fmt: skip
    return [*start, *(f"  if (choice() & 1) {name}{call};" for name in names), "}"]


def _split(names: list[str]) -> list[list[str]]:
    return [names[start : start + 4] for start in range(0, len(names), 4)]
