"""A spec as data again: what its file would hold. Certificates and counterexamples carry it."""

from __future__ import annotations

from typing import Any

from mcveto.program.models import MODEL_INPUT
from mcveto.program.spec import Address, PropertySpec, Spec


def spec_mapping(spec: Spec) -> dict[str, Any]:
    """A spec as its file would hold it, without the binary's name and what examples note about themselves."""
    calls = [call for call in spec.input_calls if call.at != MODEL_INPUT]
    inputs: dict[str, Any] = {
        "calls": {_address(call.at): {"bits": call.bits, "signed": call.signed} for call in calls},
        "registers": list(spec.input_registers),
        "memory": [{"at": _address(item.at), "size": item.size} for item in spec.input_memory],
        "pointers": {item.number: item.size for item in spec.pointers},
        "argv": {} if spec.argv is None else {"count": spec.argv.count, "size": spec.argv.size},
    }
    mapping: dict[str, Any] = {
        "arch": spec.arch,
        "base": spec.base,
        "entry": None if spec.entry is None else _address(spec.entry),
        "inputs": {key: value for key, value in inputs.items() if value},
        "assume": [_address(item) for item in spec.assume],
        "halt": [_address(item) for item in spec.halt],
        "undefined": spec.undefined,
        "stack": spec.stack,
        "objects": spec.objects,
        "regions": [
            {"at": _address(item.at), "size": item.size, "permissions": item.permissions} for item in spec.regions
        ],
        "models": {_address(at): name for at, name in spec.models} if spec.models or spec.models_imports else "none",
        "properties": [_property(item) for item in spec.properties],
    }
    return {key: value for key, value in mapping.items() if value is not None and value not in ({}, [])}


def _property(item: PropertySpec) -> Any:
    match item.argument:
        case None:
            return item.name
        case str(file):
            places: dict[str, list[str]] = {}
            for event, where in item.events:
                places.setdefault(event, []).append(_address(where))
            return {item.name: file, **({"events": places} if places else {})}
        case addresses:
            return {item.name: [_address(at) for at in addresses]}


def _address(address: Address) -> str:
    return address if isinstance(address, str) else hex(address)
