"""The spec file: what is asked of a binary, as data (YAML).

    binary: prog.elf                # relative to the spec file
    arch: x86-32                    # only for files that do not say themselves
    base: 0x400000                  # where to load what can be moved
    entry: 0x8049000
    inputs:
      calls:     {0x8049050: {bits: 32}, 0x8049060: {bits: 8, signed: true}}
      registers: [ECX]
      memory:    [{at: 0x804c000, size: 16}]
      pointers:  {3: 16}            # the entry's third argument points to 16 bytes of their own
    assume: [0x8049080]             # calls whose argument is assumed to be non-zero
    halt: [0x8049070]               # execution ends when these are reached
    models: {0x8049090: memcpy}     # library models in place of functions; a list of names; or none
    undefined: returns-anything     # so do functions that the file does not define and nothing is said about
    stack: 1048576                  # bytes of stack
    properties: [{reach: [0x8049012]}, return-address, {typestate: lock, events: {lock: 0x8049000, end: none}}]
    expected: proved                # in examples

Every key is optional. Addresses are numbers, or text that the image resolves (`symbol`, `symbol+0x10`). A key that
does not exist is an error that names the nearest one that does; so is a key this version cannot honour: nothing in a
spec is ever ignored.
"""

from __future__ import annotations

import difflib
import errno
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from mcveto.errors import InputFileError, UsageError
from mcveto.late_methods import dataclass

Address = int | str
MAX_SPEC_BYTES = 1 << 20
MAX_INPUT_MEMORY = 1 << 20
MAX_ARGUMENTS = 64
MAX_POINTED_AT = 1 << 20
EXPECTED = ("proved", "violated", "unknown")


@dataclass(frozen=True, slots=True)
class InputCall:
    at: Address
    bits: int = 32
    signed: bool = False


@dataclass(frozen=True, slots=True)
class InputMemory:
    at: Address
    size: int


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """The entry's argument of this number, from 1, is the address of so many bytes of their own, any bytes."""

    number: int
    size: int


@dataclass(frozen=True, slots=True)
class Argv:
    """Arguments of the program after its name, each any text shorter than `size` bytes."""

    count: int
    size: int


@dataclass(frozen=True, slots=True)
class RegionPermissions:
    """What the program may do with `size` bytes of the image, instead of what the file says: some of r, w and x."""

    at: Address
    size: int
    permissions: str


@dataclass(frozen=True, slots=True)
class PropertySpec:
    """A property by name with its argument: ("reach", addresses), ("return-address", None), ("typestate", file)."""

    name: str
    argument: tuple[Address, ...] | str | None = None
    events: tuple[tuple[str, Address], ...] = ()
    """Where events of a typestate automaton happen: an address, a symbol, KIND:ADDRESS, or none."""


@dataclass(frozen=True, slots=True)
class Spec:
    path: str | None = None
    binary: str | None = None
    arch: str | None = None
    base: int | None = None
    entry: Address | None = None
    input_calls: tuple[InputCall, ...] = ()
    input_registers: tuple[str, ...] = ()
    input_memory: tuple[InputMemory, ...] = ()
    pointers: tuple[PointerArgument, ...] = ()
    assume: tuple[Address, ...] = ()
    halt: tuple[Address, ...] = ()
    models: tuple[tuple[Address, str], ...] = ()
    models_imports: bool = True
    """Whether imports that a library model is known for are bound to it without being listed."""
    undefined: str | None = None
    """What calls of functions do that the file does not define and the spec says nothing about: see UNDEFINED."""
    argv: Argv | None = None
    stack: int | None = None
    regions: tuple[RegionPermissions, ...] = ()
    objects: str | None = None
    """Whether variables of a frame that code tells apart are objects of their own: separate, together, or not said."""
    properties: tuple[PropertySpec, ...] = ()
    expected: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    def binary_path(self) -> Path | None:
        """The binary, relative to the spec file."""
        if self.binary is None:
            return None
        return Path(self.path or ".").parent / self.binary


# Keys that examples use to record facts about themselves; they change nothing.
_NOTE_KEYS = ("expected_properties", "expected_result")
_KEYS = (
    "binary",
    "arch",
    "base",
    "entry",
    "inputs",
    "assume",
    "halt",
    "models",
    "undefined",
    "stack",
    "regions",
    "objects",
    "properties",
    "expected",
    *_NOTE_KEYS,
)
OBJECTS = ("separate", "together")
RETURNS_ANYTHING = "returns-anything"
UNDEFINED = ("unsupported", RETURNS_ANYTHING)
_INPUT_KEYS = ("calls", "registers", "memory", "pointers", "stdin", "argv")
_PROPERTY_NAMES = ("reach", "return-address", "memory-safety", "no-fault", "typestate")


def load_spec(path: str) -> Spec:
    """Reads and validates a spec file; raises InputFileError or UsageError."""
    return parse_spec(_read(path), path)


def parse_spec(raw: object, path: str = "<spec>") -> Spec:
    """Validates what a spec file holds."""
    top = _mapping(raw if raw is not None else {}, path, "the spec", _KEYS)
    inputs = _mapping({} if top.get("inputs") is None else top["inputs"], path, "inputs", _INPUT_KEYS)
    if inputs.get("stdin") is not None:
        raise UsageError(f"{path}: inputs.stdin is not supported yet", "use inputs.calls or inputs.memory")
    expected = _one_of(EXPECTED, top.get("expected"), path, "expected")
    objects = _one_of(OBJECTS, top.get("objects"), path, "objects")
    return Spec(
        path=path,
        binary=_text(top.get("binary"), path, "binary"),
        arch=_text(top.get("arch"), path, "arch"),
        base=_number(top.get("base"), path, "base"),
        entry=_address(top["entry"], path, "entry") if top.get("entry") is not None else None,
        input_calls=_calls({} if inputs.get("calls") is None else inputs["calls"], path),
        input_registers=tuple(str(_text(item, path, "inputs.registers")) for item in _list(inputs, "registers", path)),
        input_memory=tuple(_memory(item, path) for item in _list(inputs, "memory", path)),
        pointers=_pointers(inputs.get("pointers"), path),
        assume=tuple(_address(item, path, "assume") for item in _list(top, "assume", path)),
        halt=tuple(_address(item, path, "halt") for item in _list(top, "halt", path)),
        models=_models(top.get("models"), path),
        models_imports=top.get("models") != "none",
        undefined=_one_of(UNDEFINED, top.get("undefined"), path, "undefined"),
        argv=_argv(inputs.get("argv"), path),
        stack=_positive(top.get("stack"), path, "stack"),
        regions=tuple(_region(item, path) for item in _list(top, "regions", path)),
        objects=objects,
        properties=tuple(_property(item, path) for item in _list(top, "properties", path)),
        expected=expected,
        notes={key: top[key] for key in _NOTE_KEYS if key in top},
    )


def _read(path: str) -> object:
    text = _read_text(path)
    import yaml

    try:
        return yaml.load(text, _loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputFileError(f"spec {path}{where}: {problem}") from None
    except RecursionError:
        raise InputFileError(f"spec {path} is nested too deeply") from None
    except Exception as error:
        # The YAML library lets some malformed scalars through as errors of all kinds (`!!int ''`, `!!bool x`).
        raise InputFileError(f"spec {path} is not valid: {error}") from None


def _read_text(path: str) -> str:
    hint = "a spec is a YAML file; the binary is another argument"
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"
            raise InputFileError(f"cannot read spec {path}: {kind}", hint)
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_SPEC_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        known = {errno.ENOENT: "no such file", errno.EACCES: "permission denied"}
        reason = known.get(error.errno or 0, error.strerror or str(error))
        raise InputFileError(f"cannot read spec {path}: {reason}") from None
    except UnicodeDecodeError:
        if len(content) <= MAX_SPEC_BYTES:
            raise InputFileError(f"spec {path} is not text", hint) from None
        text = ""
    except ValueError:
        raise InputFileError(f"cannot read spec {path}: not a valid path") from None
    if len(content) > MAX_SPEC_BYTES:
        raise InputFileError(f"spec {path} is larger than {MAX_SPEC_BYTES} bytes", hint)
    if "\0" in text:
        raise InputFileError(f"spec {path} is not text", hint)
    return text


@cache
def _loader() -> Any:
    """YAML without aliases (which can grow exponentially), repeated keys, octal and base-60 numbers."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                raise yaml.YAMLError("aliases are not allowed in a spec")
            return super().compose_node(parent, index)

    def unique_mapping(loader: Any, node: Any) -> dict[Any, Any]:
        loader.flatten_mapping(node)
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise yaml.YAMLError(f"a key must be a plain value (line {line})")
            if key in result:
                raise yaml.YAMLError(f"key {key!r} is given twice (line {line})")
            result[key] = loader.construct_object(value_node, deep=True)
        return result

    integer = "tag:yaml.org,2002:int"
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != integer]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    decimal_or_hex = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0[xX][0-9a-fA-F]+)")
    Loader.add_implicit_resolver(integer, re.compile(f"(?:{decimal_or_hex.pattern})$"), list("-+0123456789"))
    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, unique_mapping)
    return Loader


def _mapping(raw: object, path: str, what: str, known: Iterable[str]) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise UsageError(f"{path}: {what} must be a mapping of keys to values")
    known = tuple(known)
    for key in raw:
        if key not in known:
            nearest = difflib.get_close_matches(_shown(key), known, n=1, cutoff=0.0)
            raise UsageError(f"{path}: unknown key '{_shown(key)}' in {what}", f"did you mean '{nearest[0]}'?")
    return raw


def _shown(value: object) -> str:
    """A value of the spec as a message shows it: numbers as the user may have written them, nothing long."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:
        # Numbers of thousands of digits.
        text = "a huge number"
    return text if len(text) <= 60 else text[:59] + "…"


def _list(raw: Mapping[str, Any], key: str, path: str) -> list[Any]:
    value = raw.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise UsageError(f"{path}: {key} must be a list", f"write {key}: [{_shown(value)}]")
    return value


def _text(raw: object, path: str, what: str) -> str | None:
    if raw is not None and not isinstance(raw, str):
        raise UsageError(f"{path}: {what} must be text, not {_shown(raw)}")
    return raw


def _one_of(choices: Sequence[str], raw: object, path: str, what: str) -> str | None:
    if raw is not None and raw not in choices:
        raise UsageError(f"{path}: {what} is {_shown(raw)}", f"one of {', '.join(choices)}")
    return raw  # type: ignore[return-value]


def _number(raw: object, path: str, what: str) -> int | None:
    if raw is not None and (not isinstance(raw, int) or isinstance(raw, bool) or raw < 0):
        raise UsageError(f"{path}: {what} must be a non-negative number, not {_shown(raw)}")
    return raw


def _positive(raw: object, path: str, what: str) -> int | None:
    value = _number(raw, path, what)
    if value == 0:
        raise UsageError(f"{path}: {what} must be positive")
    return value


def _address(raw: object, path: str, what: str) -> Address:
    if isinstance(raw, str) and raw.strip():
        return raw
    value = _number(raw, path, what)
    if value is None:
        raise UsageError(f"{path}: {what} needs an address, e.g. 0x8049000 or a symbol")
    return value


def _calls(raw: object, path: str) -> tuple[InputCall, ...]:
    if isinstance(raw, list):
        return tuple(InputCall(_address(item, path, "inputs.calls")) for item in raw)
    if not isinstance(raw, dict):
        raise UsageError(f"{path}: inputs.calls must be a mapping from address to {{bits: …}}")
    calls = []
    for key, value in raw.items():
        what = f"inputs.calls.{_shown(key)}"
        options = _mapping({} if value is None else value, path, what, ("bits", "signed"))
        bits = options.get("bits", 32)
        if not isinstance(bits, int) or isinstance(bits, bool) or not 1 <= bits <= 64:
            raise UsageError(f"{path}: {what}.bits must be between 1 and 64, not {_shown(bits)}")
        signed = options.get("signed", False)
        if not isinstance(signed, bool):
            raise UsageError(f"{path}: {what}.signed must be true or false, not {_shown(signed)}")
        calls.append(InputCall(_address(key, path, "inputs.calls"), bits, signed))
    return tuple(calls)


def _models(raw: object, path: str) -> tuple[tuple[Address, str], ...]:
    """Functions and the models that stand for them: {address: name}, or [name] for functions of that name."""
    if raw is None or raw == "none":
        return ()
    if isinstance(raw, list):
        names = [_text(item, path, "models") for item in raw]
        return tuple((name, name) for name in names if name is not None)
    if not isinstance(raw, dict):
        raise UsageError(f"{path}: models must be a list of names, a mapping from address to name, or none")
    pairs = [(_address(key, path, "models"), _text(value, path, "models")) for key, value in raw.items()]
    return tuple((address, name) for address, name in pairs if name is not None)


def _argv(raw: object, path: str) -> Argv | None:
    if raw is None:
        return None
    item = _mapping(raw, path, "inputs.argv", ("count", "size"))
    count = _number(item.get("count"), path, "inputs.argv.count")
    size = _positive(item.get("size", 16), path, "inputs.argv.size")
    if count is None or count > MAX_ARGUMENTS or size is None or count * size > MAX_INPUT_MEMORY:
        raise UsageError(f"{path}: inputs.argv must be {{count: …, size: …}}", f"at most {MAX_ARGUMENTS} arguments")
    return Argv(count, size)


def _pointers(raw: object, path: str) -> tuple[PointerArgument, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, dict):
        raise UsageError(f"{path}: inputs.pointers must be a mapping from arguments to sizes", "e.g. {3: 16}")
    found = []
    for key, value in raw.items():
        # Keys of JSON are text.
        key = int(key) if isinstance(key, str) and re.fullmatch("[0-9]{1,3}", key, re.ASCII) else key
        number, size = _positive(key, path, "inputs.pointers"), _positive(value, path, f"inputs.pointers.{_shown(key)}")
        if number is None or size is None:
            raise UsageError(f"{path}: inputs.pointers needs numbers", "e.g. {3: 16}")
        found.append(PointerArgument(number, size))
    return tuple(found)


def _memory(raw: object, path: str) -> InputMemory:
    item = _mapping(raw, path, "inputs.memory", ("at", "size"))
    size = _positive(item.get("size"), path, "inputs.memory.size")
    if size is None or size > MAX_INPUT_MEMORY:
        raise UsageError(f"{path}: inputs.memory.size must be between 1 and {MAX_INPUT_MEMORY}")
    return InputMemory(_address(item.get("at"), path, "inputs.memory.at"), size)


def _region(raw: object, path: str) -> RegionPermissions:
    item = _mapping(raw, path, "regions", ("at", "size", "permissions"))
    size = _positive(item.get("size"), path, "regions.size")
    permissions = _text(item.get("permissions"), path, "regions.permissions")
    if size is None or permissions is None:
        raise UsageError(
            f"{path}: a region needs at, size and permissions", "e.g. {at: 0x8000, size: 512, permissions: rx}"
        )
    letters = permissions.replace("-", "")
    if len(set(letters)) != len(letters) or set(letters) - set("rwx"):
        raise UsageError(f"{path}: regions.permissions is {_shown(permissions)}", "some of r, w and x, e.g. rx")
    return RegionPermissions(_address(item.get("at"), path, "regions.at"), size, letters)


def _property(raw: object, path: str) -> PropertySpec:
    events: object = None
    if isinstance(raw, str):
        name, argument = raw, None
    elif isinstance(raw, dict) and "typestate" in raw:
        item = _mapping(raw, path, "a typestate property", ("typestate", "events"))
        name, argument, events = "typestate", item["typestate"], item.get("events")
    elif isinstance(raw, dict) and len(raw) == 1:
        name, argument = next(iter(raw.items()))
    else:
        raise UsageError(f"{path}: a property is a name or {{name: argument}}, not {_shown(raw)}")
    if name not in _PROPERTY_NAMES:
        nearest = difflib.get_close_matches(_shown(name), _PROPERTY_NAMES, n=1, cutoff=0.0)
        raise UsageError(f"{path}: unknown property '{_shown(name)}'", f"did you mean '{nearest[0]}'?")
    if name == "reach":
        targets = argument if isinstance(argument, list) else [argument]
        if not targets:
            raise UsageError(f"{path}: properties.reach names no address", "e.g. reach: [0x8049012]")
        return PropertySpec(name, tuple(_address(item, path, "properties.reach") for item in targets))
    if name == "typestate":
        if argument is None:
            raise UsageError(f"{path}: property 'typestate' needs the name of its file")
        return PropertySpec(name, _text(argument, path, "properties.typestate"), tuple(_events(events, path)))
    if argument is not None:
        raise UsageError(f"{path}: property '{name}' takes no argument")
    return PropertySpec(name)


def _events(raw: object, path: str) -> Iterator[tuple[str, Address]]:
    """Where events happen: {event: address}, or several of them in a list; `none` or [] for one that never does."""
    if raw is None:
        return
    if not isinstance(raw, dict):
        raise UsageError(f"{path}: properties.events must be a mapping", "e.g. events: {lock: 0x8049000, end: none}")
    for key, value in raw.items():
        if not isinstance(key, str):
            raise UsageError(f"{path}: properties.events: {_shown(key)} is not the name of an event")
        values = value if isinstance(value, list) else [value]
        for one in values or ["none"]:
            yield key, _address(one, path, f"properties.events.{_shown(key)}")
