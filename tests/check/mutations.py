"""Random changes of a certificate, each to one invariant, location, byte, edge or number."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable
from typing import Any

Data = dict[str, Any]
_CONSTANT = re.compile(r"#x[0-9a-f]+")
_ORDERS = ("bvult", "bvule", "bvslt", "bvsle")


def mutate(data: Data, generator: random.Random) -> tuple[str, list[str]]:
    """Changes `data` in place; what was done, and the locations whose claim is another one now."""
    while True:
        kind = generator.choice(sorted(KINDS))
        changed = KINDS[kind](data, generator)
        if changed is not None:
            return kind, changed


def _location(data: Data, generator: random.Random) -> Data:
    found: Data = generator.choice(data["locations"])
    return found


def _alternative(location: Data, generator: random.Random) -> list[str] | None:
    return generator.choice(location["invariant"]) if location["invariant"] else None


def _drop_alternative(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    if not location["invariant"]:
        return None
    location["invariant"].pop(generator.randrange(len(location["invariant"])))
    return [location["id"]]


def _drop_condition(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    conditions = _alternative(location, generator)
    if not conditions:
        return None
    conditions.pop(generator.randrange(len(conditions)))
    return [location["id"]]


def _negate_condition(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    conditions = _alternative(location, generator)
    if not conditions:
        return None
    at = generator.randrange(len(conditions))
    conditions[at] = f"(not {conditions[at]})"
    return [location["id"]]


def _add_condition(data: Data, generator: random.Random) -> list[str] | None:
    location, other = _location(data, generator), _location(data, generator)
    conditions, borrowed = _alternative(location, generator), _alternative(other, generator)
    if conditions is None or not borrowed:
        return None
    added = generator.choice(borrowed)
    conditions.append(added if generator.random() < 0.5 else f"(not {added})")
    return [location["id"]]


def _change_constant(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    conditions = _alternative(location, generator)
    places = [(at, m) for at, text in enumerate(conditions or ()) for m in _CONSTANT.finditer(text)]
    if not conditions or not places:
        return None
    at, match = generator.choice(places)
    digits = match[0][2:]
    value = (int(digits, 16) + generator.choice((1, -1, 2, 4, 16, 1 << 4 * len(digits) - 1))) % (1 << 4 * len(digits))
    text = conditions[at]
    conditions[at] = f"{text[: match.start()]}#x{value:0{len(digits)}x}{text[match.end() :]}"
    return [location["id"]]


def _change_order(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    conditions = _alternative(location, generator)
    places = [(at, order) for at, text in enumerate(conditions or ()) for order in _ORDERS if f"({order} " in text]
    if not conditions or not places:
        return None
    at, order = generator.choice(places)
    other = generator.choice([item for item in _ORDERS if item != order])
    conditions[at] = conditions[at].replace(f"({order} ", f"({other} ", 1)
    return [location["id"]]


def _drop_location(data: Data, generator: random.Random) -> list[str] | None:
    """A location and all that leads to it."""
    dropped = data["locations"].pop(generator.randrange(len(data["locations"])))["id"]
    data["start"] = [name for name in data["start"] if name != dropped]
    for location in data["locations"]:
        location["steps"] = [name for name in location["steps"] if name != dropped]
        for kind in ("calls", "returns"):
            if kind in location:
                location[kind] = [edge for edge in location[kind] if edge["to"] != dropped]
    return [] if data["locations"] else None


def _drop_step(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    if not location["steps"]:
        return None
    location["steps"].pop(generator.randrange(len(location["steps"])))
    return [location["id"]]


def _redirect_step(data: Data, generator: random.Random) -> list[str] | None:
    location, other = _location(data, generator), _location(data, generator)["id"]
    if not location["steps"] or other in location["steps"]:
        return None
    location["steps"][generator.randrange(len(location["steps"]))] = other
    return [location["id"]]


def _change_byte(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    if not location["code"]:
        return None
    at = generator.randrange(len(location["code"]))
    code, _, text = location["code"][at].partition(" ")
    content = bytearray.fromhex(code)
    content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    location["code"][at] = f"{content.hex()} {text}"
    return [location["id"]]


def _drop_instruction(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    if not location["code"]:
        return None
    location["code"].pop(generator.choice((0, -1)))
    return [location["id"]]


def _change_number(key: str) -> Callable[[Data, random.Random], list[str] | None]:
    def change(data: Data, generator: random.Random) -> list[str] | None:
        location = _location(data, generator)
        if location[key] == "any":
            location[key] = hex(generator.choice((0, 1, 0x7FFEF000)))
        else:
            location[key] = hex(max(0, int(location[key], 16) + generator.choice((1, -1, 4, -4, 8, 64))))
        return [location["id"]]

    return change


def _change_frame(data: Data, generator: random.Random) -> list[str] | None:
    location = _location(data, generator)
    frames = location["frames"]
    if frames is None:
        return None
    at = generator.randrange(len(frames))
    match generator.randrange(3):
        case 0:
            frames.pop(at)
        case 1:
            frames.insert(at, frames[at])
        case _:
            frames[at] = hex(int(frames[at], 16) ^ 1 << generator.randrange(8))
    return [location["id"]]


def _change_edge(data: Data, generator: random.Random) -> list[str] | None:
    """A call or return where no call string is kept: none, elsewhere, or with another address pending."""
    kind = generator.choice(("calls", "returns"))
    candidates = [location for location in data["locations"] if location.get(kind)]
    if not candidates:
        return None
    location = generator.choice(candidates)
    edges = location[kind]
    at = generator.randrange(len(edges))
    match generator.randrange(3):
        case 0:
            edges.pop(at)
        case 1:
            edges[at]["to"] = _location(data, generator)["id"]
        case _:
            edges[at]["expecting"] = hex(int(edges[at]["expecting"], 16) ^ 1 << generator.randrange(8))
    return [location["id"]]


def _change_note(data: Data, generator: random.Random) -> list[str] | None:
    """What a step remembers: nothing, or something else."""
    candidates = [location for location in data["locations"] if location.get("notes")]
    if not candidates:
        return None
    location = generator.choice(candidates)
    notes = location["notes"]
    at = generator.randrange(len(notes))
    match generator.randrange(3):
        case 0:
            notes.pop(at)
        case 1:
            bits = next(item["bits"] for item in data["history"] if item["name"] == notes[at]["name"])
            number = generator.randrange(1 << min(bits, 2)) if bits > 1 else 0
            notes[at]["value"] = generator.choice((f"fresh!1.{bits}", f"fresh!2.{bits}", f"(_ bv{number} {bits})"))
        case _:
            notes[at]["name"] = generator.choice(data["history"])["name"]
    return [location["id"]]


def _change_history(data: Data, generator: random.Random) -> list[str] | None:
    """A variable that begins as something else, or is none."""
    if not data["history"]:
        return None
    at = generator.randrange(len(data["history"]))
    if generator.random() < 0.5:
        data["history"].pop(at)
    else:
        data["history"][at]["begins"] = "" if data["history"][at]["begins"] else "mem"
    return []


def _change_text(data: Data, generator: random.Random) -> list[str] | None:
    """One character of a text, with a fitting hash: another property, model or program."""
    if not data["sources"]:
        return None
    source = generator.choice(data["sources"])
    letters = [at for at, letter in enumerate(source["text"]) if letter.isalnum()]
    at = generator.choice(letters)
    other = generator.choice([letter for letter in "0aefln" if letter != source["text"][at]])
    source["text"] = source["text"][:at] + other + source["text"][at + 1 :]
    source["sha256"] = hashlib.sha256(source["text"].encode()).hexdigest()
    return []


KINDS: dict[str, Callable[[Data, random.Random], list[str] | None]] = {
    "drop alternative": _drop_alternative,
    "drop condition": _drop_condition,
    "negate condition": _negate_condition,
    "add condition": _add_condition,
    "change constant": _change_constant,
    "change order": _change_order,
    "drop location": _drop_location,
    "drop step": _drop_step,
    "redirect step": _redirect_step,
    "change byte": _change_byte,
    "drop instruction": _drop_instruction,
    "change pc": _change_number("pc"),
    "change stack pointer": _change_number("stack_pointer"),
    "change frame pointer": _change_number("frame_pointer"),
    "change frame": _change_frame,
    "change edge": _change_edge,
    "change note": _change_note,
    "change history": _change_history,
    "change text": _change_text,
}
