"""Terms as people write them: `eax + 4 <s mem32[esp - 8]`.

u and s mark unsigned and signed operators, `++` glues bit-vectors, `x[7:0]` cuts them, `mem32[p]` loads 32
bits (`mem32be` big-endian), `mem{p := x}` is the memory after a store. A large formula is printed once per
shared subterm: `t1 + t1 where t1 = ...`. Iterative, and linear in the size of the DAG.
"""

from __future__ import annotations

from mcveto.logic.node import Term, signed

TREE_LIMIT = 300  # a formula whose tree is larger than this is printed with names for its shared subterms

_COMPARISONS = {"eq": "=", "ult": "<u", "ule": "<=u", "slt": "<s", "sle": "<=s"}
_INFIX: dict[str, tuple[str, int]] = {
    "or": ("|", 7),
    "xor": ("^", 8),
    "and": ("&", 9),
    "shl": ("<<", 10),
    "lshr": (">>u", 10),
    "ashr": (">>s", 10),
    "concat": ("++", 11),
    "mul": ("*", 13),
    "udiv": ("/u", 13),
    "urem": ("%u", 13),
    "sdiv": ("/s", 13),
    "srem": ("%s", 13),
}
_SUM, _PRODUCT, _POSTFIX = 12, 13, 15

Item = str | tuple[Term, int]


def _number(value: int, width: int) -> str:
    if width == 1:
        return "true" if value else "false"
    small = signed(value, width)
    return str(small) if abs(small) < 4096 else hex(value)


def _separated(args: tuple[Term, ...], separator: str, level: int) -> list[Item]:
    items: list[Item] = []
    for i, x in enumerate(args):
        if i:
            items.append(f" {separator} ")
        items.append((x, level))
    return items


def _sum(t: Term) -> list[Item]:
    coefficients, constant = t.data
    items: list[Item] = []
    monomials = [(signed(c, t.width), x) for c, x in zip(coefficients, t.args, strict=True)]
    monomials.sort(key=lambda m: m[0] < 0)
    for c, x in monomials:
        if items:
            items.append(" - " if c < 0 else " + ")
        elif c < 0:
            items.append("-")
        if abs(c) == 1:
            items.append((x, _SUM + 1))
        else:
            items += [f"{_number(abs(c), t.width + 1)}*", (x, _PRODUCT + 1)]
    if constant:
        value = signed(constant, t.width)
        if abs(value) < 4096:
            items.append(f" - {-value}" if value < 0 else f" + {value}")
        else:
            items.append(f" + {constant:#x}")
    return items


def _parts(t: Term) -> tuple[int, list[Item]]:
    """Precedence and pieces of a term."""
    op, args = t.op, t.args
    if op == "const":
        return 16, [_number(t.data, t.width)]
    if op == "var":
        return 16, [t.data]
    if op == "memory":
        return 16, [t.data[0]]
    if op == "lin":
        return _SUM, _sum(t)
    if op in _COMPARISONS:
        return 5, _separated(args, _COMPARISONS[op], 6)
    if op in ("and", "or") and t.width == 1:
        level = 3 if op == "and" else 2
        return level, _separated(args, op, level + 1)
    if op == "not":
        if args[0].op == "eq":
            return 5, _separated(args[0].args, "!=", 6)
        return 4, ["not ", (args[0], 4)]
    if op in _INFIX:
        symbol, level = _INFIX[op]
        return level, _separated(args, symbol, level + 1)
    if op == "ite":
        return 1, [(args[0], 2), " ? ", (args[1], 2), " : ", (args[2], 1)]
    if op == "extract":
        hi, lo = t.data
        return _POSTFIX, [(args[0], _POSTFIX), f"[{hi}]" if hi == lo else f"[{hi}:{lo}]"]
    if op == "load":
        order = "be" if t.data[1] else ""
        return _POSTFIX, [(args[0], _POSTFIX), f"{t.width}{order}[", (args[1], 0), "]"]
    if op == "store":
        order = "be" if t.data else ""
        return _POSTFIX, [(args[0], _POSTFIX), "{", (args[1], 0), f" :={order} ", (args[2], 0), "}"]
    name = f"{op}{t.width}" if op in ("zext", "sext", "popcount", "lzcount") else op
    items: list[Item] = [f"{name}("]
    for i, x in enumerate(args):
        items += [", "] if i else []
        items.append((x, 0))
    return _POSTFIX, [*items, ")"]


def _emit(root: Term, names: dict[Term, str], out: list[str]) -> None:
    stack: list[Item] = list(reversed(_parts(root)[1]))
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        t, level = item
        name = names.get(t)
        if name is not None:
            out.append(name)
            continue
        own, items = _parts(t)
        if own < level:
            out.append("(")
            stack.append(")")
        stack.extend(reversed(items))


def pretty(term: Term) -> str:
    """The term in infix notation."""
    from mcveto.logic.terms import postorder

    order = postorder([term])
    size: dict[Term, int] = {}
    uses: dict[Term, int] = {}
    for t in order:
        total = 1
        for x in t.args:
            total += size[x]
            uses[x] = uses.get(x, 0) + 1
        size[t] = min(total, TREE_LIMIT + 1)
    names: dict[Term, str] = {}
    if size[term] > TREE_LIMIT:
        shared = [t for t in order if t.args and t is not term and uses[t] > 1]
        names = {t: f"t{i}" for i, t in enumerate(shared, 1)}
    out: list[str] = []
    _emit(term, names, out)
    for i, (t, name) in enumerate(names.items()):
        out.append(f"\n  where {name} = " if i == 0 else f"\n        {name} = ")
        _emit(t, names, out)
    return "".join(out)
