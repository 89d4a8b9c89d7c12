"""The condition of a path, kept as independent groups of conjuncts.

A question about a path concerns only the conjuncts that share variables, directly or through others, with what is
asked: the model of the rest stays valid (as in EXE and KLEE: Cadar et al., OSDI 2008, §3.3). Groups are kept while
conjuncts are added, so that a question costs its group and not the length of the path. Of several bounds of one term
only the closest is part of a question: a loop up to an input compares it once in every turn.

Bytes of the entry memory at constant addresses count as variables of their own; a read through a symbolic address
concerns all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcveto.logic.terms import Term

# A variable, the address of a byte of the entry memory, or the entry memory as a whole.
Key = Term | int
Keys = frozenset[Key]
NOTHING: Keys = frozenset()


class KeyTable:
    """The keys of terms, remembered for every node: loops extend terms, and each is walked once."""

    def __init__(self, memory: Term) -> None:
        self._memory = memory
        self._known: dict[Term, Keys] = {memory: frozenset((memory,))}

    def forget(self) -> None:
        """All of it can be found again; it holds every term that was asked about."""
        self._known = {self._memory: frozenset((self._memory,))}

    def of(self, root: Term) -> Keys:
        known = self._known
        found = known.get(root)
        if found is not None:
            return found
        if root.op == "var":  # most stand for a place, and are part of no other term
            return frozenset((root,))
        stack = [root]
        while stack:
            term = stack[-1]
            if term in known:
                stack.pop()
                continue
            if term.op == "load" and term.args[0] is self._memory and term.args[1].op == "const":
                address, mask = term.args[1].data, (1 << term.args[1].width) - 1
                known[term] = frozenset((address + i) & mask for i in range(term.data[0]))
                stack.pop()
                continue
            waiting = [x for x in term.args if x not in known]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            known[term] = frozenset((term,)) if term.op == "var" else self._union([known[x] for x in term.args])
        return known[root]

    @staticmethod
    def _union(sets: list[Keys]) -> Keys:
        if not sets:
            return NOTHING
        largest = max(sets, key=len)
        rest = [s for s in sets if s is not largest and not s <= largest]
        return largest.union(*rest) if rest else largest


def _bound(term: Term) -> tuple[tuple[str, int, Term], int] | None:
    """Of a comparison with a number: what is compared, how and on which side, and a number that is greater where the
    comparison says more."""
    if term.op not in ("ult", "slt"):
        return None
    low, high = term.args
    limit = high if high.op == "const" else low
    if limit.op != "const":
        return None
    is_negative = term.op == "slt" and limit.data >> limit.width - 1
    number = limit.data - (is_negative << limit.width)
    return ((term.op, 0, low), -number) if limit is high else ((term.op, 1, high), number)


def _implies(closer: Term, term: Term) -> bool:
    """Whether both are bounds of the same kind, and the first leaves the second nothing to say."""
    one, other = _bound(closer), _bound(term)
    return one is not None and other is not None and one[0] == other[0] and one[1] >= other[1]


class Group:
    __slots__ = ("keys", "terms")

    def __init__(self, terms: tuple[Term, ...], keys: Keys) -> None:
        self.terms = terms
        self.keys = keys


class Path:
    """Conjuncts in the order they were added."""

    __slots__ = ("_groups", "_table", "terms")

    def __init__(self, table: KeyTable, terms: Iterable[Term] = ()) -> None:
        self._table = table
        self.terms: list[Term] = []
        self._groups: dict[Key, Group] = {}
        for term in terms:
            self.add(term)

    def copy(self) -> Path:
        twin = Path(self._table)
        twin.terms = list(self.terms)
        twin._groups = dict(self._groups)
        return twin

    def add(self, term: Term) -> None:
        for part in term.args if term.op == "and" else (term,):
            keys = self._table.of(part)
            touched = self._touched(keys)
            if any(part in group.terms for group in touched) or self._is_implied(part, touched):
                continue
            self.terms.append(part)
            terms = (*(old for group in touched for old in group.terms if not _implies(part, old)), part)
            merged = Group(terms, keys.union(*(group.keys for group in touched)) if touched else keys)
            for key in merged.keys:
                self._groups[key] = merged

    def keys_of(self, term: Term) -> Keys:
        """What the term depends on."""
        return self._table.of(term)

    def holds(self, term: Term) -> bool:
        """Whether the term is one of the conjuncts that are asked about."""
        return any(term in group.terms for group in self._touched(self._table.of(term)))

    @staticmethod
    def _is_implied(term: Term, groups: list[Group]) -> bool:
        return _bound(term) is not None and any(_implies(old, term) for group in groups for old in group.terms)

    def about(self, terms: Iterable[Term]) -> list[Term]:
        """The conjuncts connected with the terms."""
        keys = KeyTable._union([self._table.of(term) for term in terms])
        return [term for group in self._touched(keys) for term in group.terms]

    def groups_about(self, term: Term) -> list[Group]:
        """The groups of these; a group never changes."""
        return self._touched(self._table.of(term))

    def _touched(self, keys: Keys) -> list[Group]:
        """The groups that share a key, in order of their first key."""
        found: dict[int, Group] = {}
        groups = self._groups
        if len(keys) < len(groups):
            for key in keys:
                group = groups.get(key)
                if group is not None:
                    found[id(group)] = group
        else:
            for key, group in groups.items():
                if key in keys:
                    found[id(group)] = group
        memory = self._table._memory
        if memory in keys:
            # Every byte of the entry memory may be meant.
            for key, group in groups.items():
                if isinstance(key, int) or key is memory:
                    found[id(group)] = group
        elif memory in groups and any(isinstance(key, int) for key in keys):
            found[id(groups[memory])] = groups[memory]
        return sorted(found.values(), key=lambda group: group.terms[0].serial)
