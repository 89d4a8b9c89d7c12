"""Counterexample-guided abstraction refinement over machine code.

Predicate abstraction with lazy refinement (Graf and Saidi, CAV 1997; Henzinger, Jhala, Majumdar and Sutre, "Lazy
abstraction", POPL 2002), as Chaki and Ivers use it for PowerPC drivers ("Software model checking without source code",
air-powerpc), on the locations and blocks of `dpg` instead of on C:

| part | file |
|---|---|
| registers and bytes that have one value, shared between states | `constants.py` |
| what the solver is asked, and the three treatments of bitwise operations | `treatment.py` |
| ranges of addresses | `bounds.py` |
| abstract states and their successors | `region.py`, `post.py` |
| exploration of all abstract states | `reachability.py` |
| validation of an abstract path, and new predicates from its core by `Pre` | `refine.py` |
| the reached states as an inductive invariant | `claim.py` |
| the loop, and the verdict | `engine.py` |
"""
