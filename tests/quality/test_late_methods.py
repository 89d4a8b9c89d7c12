"""Classes with late methods behave as those of the standard decorator, and start-up has no others."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from mcveto import late_methods

Decorator = Callable[..., Any]
CHOICES: list[dict[str, bool]] = [
    {"frozen": frozen, "eq": eq, "slots": slots}
    for frozen in (False, True)
    for eq in (False, True)
    for slots in (False, True)
]


class Point:
    """With every kind of field."""

    name: str
    sizes: list[int] = field(default_factory=list)
    at: float = 0.5
    kind: ClassVar[str] = "point"
    note: str = field(default="n", repr=False, compare=False)
    salt: int = field(default=3, hash=False, repr=False)
    made: dict[str, int] = field(default_factory=dict, init=False, compare=False)
    seen: int = field(default=7, init=False)
    last: tuple[int, ...] = field(default=(), kw_only=True)


class Checked:
    low: int
    high: int = 9

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("empty")


class Own:
    """Methods that a class has of its own stay."""

    value: int

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "value", int(text))

    def __repr__(self) -> str:
        return f"<{self.value}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.value % 10 == other.value % 10


class Hashed:
    value: int

    def __hash__(self) -> int:
        return 11


class Nothing:
    pass


def pair(cls: type, choice: dict[str, bool]) -> tuple[Any, Any]:
    """The class made by the standard decorator, and by ours."""
    bare = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    names = [type(cls.__name__, (), dict(bare)) for _ in range(2)]
    return dataclasses.dataclass(**choice)(names[0]), late_methods.dataclass(**choice)(names[1])


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return type(error)


def changed(action: Callable[[], Any]) -> Any:
    """Refused in one way: Python 3.11's own decorator stumbles over names that are no fields of a class with slots."""
    result = outcome(action)
    return dataclasses.FrozenInstanceError if result is TypeError else result


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(name for name in choice if choice[name]) or "-")
@pytest.mark.parametrize(
    ("cls", "calls"),
    [
        (
            Point,
            [("p",), ("p", [1]), ("p", [1], 0.5, "other"), ("p", [1], 0.25), ("p", [1], 0.5, "n", 4), (), (1,) * 6],
        ),
        (Checked, [(1,), (1, 2), (3, 2), (1, 9)]),
        (Own, [("1",), ("11",), ("2",)]),
        (Hashed, [(1,), (2,)]),
        (Nothing, [(), ()]),
    ],
)
def test_as_the_standard_decorator(cls: type, calls: list[tuple[Any, ...]], choice: dict[str, bool]) -> None:
    both = pair(cls, choice)
    seen = []
    for made in both:
        results = [outcome(partial(made, *call)) for call in calls]
        here = [value for value in results if not isinstance(value, type)]
        with_eq = choice["eq"] or cls is Hashed
        seen.append(
            [
                [value if isinstance(value, type) else None for value in results],
                [repr(value) for value in here],
                [[a == b for b in here] for a in here],
                [[a.__eq__(1), a != b] for a, b in pairwise(here)],
                [outcome(partial(hash, value)) for value in here] if with_eq else "by identity",
                [[getattr(value, f.name, None) for f in dataclasses.fields(value)] for value in here],
                [repr(outcome(partial(dataclasses.replace, value))) for value in here],
                [repr(copy.deepcopy(value)) for value in here],
                made.__match_args__,
                getattr(made, "__slots__", None),
                made.__name__,
                made.__hash__ is None,
                [(f.name, f.default, f.init) for f in dataclasses.fields(made)],
                [changed(partial(setattr, value, "value", 5)) for value in here],
                [changed(partial(delattr, value, "low")) for value in here],
                [changed(partial(setattr, value, "unheard_of", 5)) for value in here],
            ]
        )
    assert seen[0] == seen[1]


@late_methods.dataclass(frozen=True, slots=True)
class Sent:
    a: int
    b: tuple[str, ...] = ()


@late_methods.dataclass
class Tree:
    below: list[Tree] = field(default_factory=list)


def test_what_is_sent_arrives() -> None:
    assert pickle.loads(pickle.dumps(Sent(1, ("x",)))) == Sent(1, ("x",))


def test_by_name_and_what_inherits() -> None:
    class Child(Sent):
        more: int = 0

    child = Child(b=("y",), a=2)
    assert (child.a, child.b) == (2, ("y",))
    assert child == Child(2, ("y",))
    assert child != Sent(2, ("y",))
    with pytest.raises(dataclasses.FrozenInstanceError):
        child.a = 3  # type: ignore[misc]
    child.more = 4
    assert child.more == 4


def test_what_contains_itself() -> None:
    tree = Tree()
    tree.below.append(tree)
    assert repr(tree) == "Tree(below=[...])"


def test_a_method_is_compiled_once() -> None:
    @late_methods.dataclass(frozen=True)
    class Fresh:
        a: int

    before = vars(Fresh)["__init__"]
    Fresh(1)
    after = vars(Fresh)["__init__"]
    assert Fresh(2).a == 2
    assert before is not after
    assert vars(Fresh)["__init__"] is after


def test_what_it_is_not_for() -> None:
    with pytest.raises(TypeError, match="inherits fields"):

        @late_methods.dataclass
        class Child(Tree):
            more: int = 0

    with pytest.raises(TypeError, match="no fields"):

        @late_methods.dataclass
        class Given:
            more: dataclasses.InitVar[int]


def test_start_up_compiles_no_methods_ahead() -> None:
    """Each class of the standard decorator costs a millisecond of every answer."""
    program = """if True:
        import dataclasses, sys
        from importlib import import_module
        from mcveto import ahead
        for name in (*ahead._NEEDED, "mcveto.cli.verify", "mcveto.self_check"):
            import_module(name)
        for name, module in sorted(sys.modules.items()):
            for value in vars(module).values() if name.startswith("mcveto.") else ():
                if isinstance(value, type) and value.__module__ == name and dataclasses.is_dataclass(value):
                    init = vars(value).get("__init__")
                    if init is not None and init.__code__.co_filename == "<string>":
                        print(f"{name}.{value.__name__}")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # Locations are ordered.
    assert set(done.stdout.split()) <= {"mcveto.dpg.location.Location"}, done.stdout
