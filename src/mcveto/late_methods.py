"""`dataclass` whose methods are written when they are first called.

The standard decorator compiles `__init__`, `__repr__`, `__eq__`, `__hash__`, `__setattr__` and `__delattr__` of each
class when the class is defined: about a millisecond for each class, a sixth of a short answer's time, for methods most
of which are never called. Here the standard decorator finds the fields and makes the slots, as always; `__init__`,
`__repr__`, `__eq__` and `__hash__` are stand-ins that compile the method at their first call, put it in their place and
call it. The methods do what the standard ones do. To type checkers, this is the standard decorator.

For classes that do not inherit fields and are not ordered; others use the standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False):
        """As `dataclasses.dataclass`."""
        if cls is None:
            return lambda cls: _processed(cls, frozen, eq, slots)
        return _processed(cls, frozen, eq, slots)


def _processed(cls: type, frozen: bool, eq: bool, slots: bool) -> type:
    if any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:]):
        raise TypeError(f"{cls.__qualname__} inherits fields: it needs the standard decorator")
    if frozen and {"__setattr__", "__delattr__"} & cls.__dict__.keys():
        raise TypeError(f"{cls.__qualname__} is frozen and cannot have __setattr__ or __delattr__ of its own")
    own = cls.__dict__.copy()
    if cls.__doc__ is None:
        # The standard decorator would make one from the signature, for more than the rest costs.
        cls.__doc__ = cls.__qualname__
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    made.__dataclass_params__.frozen = frozen
    made.__dataclass_params__.eq = eq
    fields = dataclasses.fields(made)
    if any("InitVar" in str(field.type) for field in made.__dataclass_fields__.values()):
        raise TypeError(f"{cls.__qualname__} has parameters that are no fields: it needs the standard decorator")
    if "__init__" not in own:
        _put_later(made, "__init__", lambda: _init(made, fields, frozen))
    if "__repr__" not in own:
        _put_later(made, "__repr__", lambda: _repr(fields))
    if eq and "__eq__" not in own:
        _put_later(made, "__eq__", lambda: _eq(fields))
    # In a class with an __eq__ of its own, None as __hash__ was put there by Python.
    has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    if eq and not has_hash:
        if frozen:
            _put_later(made, "__hash__", lambda: _hash(fields))
        else:
            made.__hash__ = None
    if frozen:
        _freeze(made, frozenset(field.name for field in fields))
        if slots and "__getstate__" not in own:
            made.__getstate__, made.__setstate__ = _state, _set_state
    return made  # type: ignore[no-any-return]


def _put_later(cls: Any, name: str, make: Callable[[], Callable[..., Any]]) -> None:
    def stand_in(self: Any, *arguments: Any, **named: Any) -> Any:
        method = make()
        method.__qualname__ = stand_in.__qualname__
        setattr(cls, name, method)
        return method(self, *arguments, **named)

    stand_in.__name__, stand_in.__qualname__ = name, f"{cls.__qualname__}.{name}"
    setattr(cls, name, stand_in)


def _init(cls: Any, fields: tuple[Field[Any], ...], frozen: bool) -> Callable[..., Any]:
    known: dict[str, Any] = {"_set": object.__setattr__, "_not_given": MISSING}
    parameters: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for field in fields:
        name = field.name
        value = name
        has_default = field.default is not MISSING
        if field.default_factory is not MISSING:
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _not_given else {name}" if field.init else f"_make_{name}()"
        elif has_default:
            known[f"_default_{name}"] = field.default
            value = name if field.init else f"_default_{name}"
        elif not field.init:
            continue
        if field.init:
            optional = f"=_default_{name}" if has_default else "=_not_given"
            is_optional = has_default or field.default_factory is not MISSING
            (named if field.kw_only else parameters).append(name + (optional if is_optional else ""))
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    header = ", ".join(["self", *parameters, *(["*", *named] if named else [])])
    return _compiled("__init__", header, lines or ["pass"], known)


def _repr(fields: tuple[Field[Any], ...]) -> Callable[..., Any]:
    shown = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in fields if field.repr)
    method = _compiled("__repr__", "self", [f"return self.__class__.__qualname__ + f'({shown})'"], {})
    return recursive_repr()(method)


def _eq(fields: tuple[Field[Any], ...]) -> Callable[..., Any]:
    compared = [field.name for field in fields if field.compare]
    lines = [
        f"if other.__class__ is self.__class__: return {_tuple('self', compared)} == {_tuple('other', compared)}",
        "return NotImplemented",
    ]
    return _compiled("__eq__", "self, other", lines, {})


def _hash(fields: tuple[Field[Any], ...]) -> Callable[..., Any]:
    hashed = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
    return _compiled("__hash__", "self", [f"return hash({_tuple('self', hashed)})"], {})


def _tuple(owner: str, names: list[str]) -> str:
    return f"({''.join(f'{owner}.{name}, ' for name in names)})"


def _compiled(name: str, parameters: str, lines: list[str], known: dict[str, Any]) -> Callable[..., Any]:
    scope = dict(known)
    text = f"def {name}({parameters}):\n  " + "\n  ".join(lines)
    exec(compile(text, "<late method>", "exec"), scope)
    method: Callable[..., Any] = scope[name]
    return method


def _freeze(cls: Any, names: frozenset[str]) -> None:
    def set_attribute(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = set_attribute, delete_attribute


def _state(self: Any) -> list[Any]:
    """For pickle, which would otherwise assign to the fields."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
