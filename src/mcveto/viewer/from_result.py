"""Pages from a result that was written with --json: as much as it holds.

A verdict of `verify` names its binary, inputs and command, so code and run can be made again if the files are still
there and the same. What the search did, and invariants, are only in the data that --report-data writes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mcveto.errors import InputFileError
from mcveto.report.json_file import encodable
from mcveto.verdict import Verdict, VerdictInput
from mcveto.viewer.page_data import SCHEMA, Data, empty_pages, verdict_summary
from mcveto.viewer.story import model_story, unknown_story

MORE = "written from the JSON result alone; --report-data also holds code, invariants and how the search went"
_KINDS = ("proved", "violated", "unknown")


def read_result(text: bytes, name: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{name} is not a result: {error}") from None
    if record.get("schema") == SCHEMA:
        wanted = empty_pages("", (), "")
        wrong = [
            key for key, value in wanted.items() if not isinstance(record.get(key), type(value)) and value is not None
        ]
        wrong += [
            f"{key}.{part}"
            for key in ("subject", "verdict")
            if key not in wrong
            for part in wanted[key]
            if part not in record[key]
        ]
        if wrong:
            raise InputFileError(f"{name} is damaged: {', '.join(wrong[:5])}")
    return record


def verdict_of(record: dict[str, Any], name: str) -> Verdict:
    """The verdict that a JSON result of `verify` holds; raises InputFileError."""
    try:
        inputs = tuple(VerdictInput(int(i["value"]), int(i["bits"]), str(i["where"])) for i in record["inputs"])
        proof = record["proof"] or {}
        if record["verdict"] not in _KINDS:
            raise KeyError(record["verdict"])
        return Verdict(
            record["verdict"],
            about=record["property"] or "",
            reason=record["reason"] or "",
            inputs=inputs,
            confirmed_by=tuple(map(str, record["confirmed_by"])),
            assumptions=tuple(map(str, record["assumptions"])),
            statistics={key: value for key, value in record["stats"].items() if value is not None},
            at=record["at"],
            aftermath=tuple(map(str, record["after_violation"])),
            support={key: value for key, value in proof.items() if key not in ("file", "warnings")},
            warnings=tuple(map(str, proof.get("warnings", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputFileError(f"{name} is not a complete verdict: {type(error).__name__} {error}") from None


def summary_pages(record: dict[str, Any], verdict: Verdict, why_not_more: str) -> Data:
    """A verdict whose program is not at hand."""
    binary = record.get("binary") or {}
    data = empty_pages(str(record.get("mcveto")), record.get("command") or [], str(binary.get("path")))
    data["subject"]["sha256"] = binary.get("sha256")
    verdict_summary(data, verdict)
    if verdict.kind == "unknown":
        data["story"], data["tries"] = unknown_story(verdict)
    else:
        data["story"] = [f"{verdict.headline}: {verdict.reason}" if verdict.reason else verdict.headline]
    data["notes"] = [MORE, f"code and run are not shown: {why_not_more}"]
    data["timeline"]["why_empty"] = MORE
    return data


def counterexample_pages(record: dict[str, Any], name: str) -> Data:
    """The pages of a JSON result of `counterexamples`."""
    try:
        data = empty_pages(str(record["mcveto"]), record["command"], str(record["model"]))
        kind = record["verdict"]
        if kind not in _KINDS:
            raise KeyError(kind)
        headline = f"VIOLATED({record['property']})" if kind == "violated" else kind.upper()
        data["verdict"] |= {"kind": kind, "headline": headline, "about": record["property"]}
        data["subject"]["checked"] = [f"property {record['property']}"]
        data["subject"]["is_model"] = "tried" not in record
        first: list[Data] = []
        for number, item in enumerate(record["counterexamples"]):
            states = [_state(state) for state in item["states"]]
            if number == 0:
                first = states
            end = int(item["same_end"])
            states = first[: int(item["same_start"])] + states + (first[len(first) - end :] if end else [])
            data["traces"].append(
                {
                    "number": number + 1,
                    "status": "confirmed" if "inputs" in item else "in the model",
                    "means": str(item.get("means") or ""),
                    "reason": "",
                    "error": str(item["error"]),
                    "length": int(item["length"]),
                    "inputs": [
                        {"name": "", "value": str(i["value"]), "hex": "", "character": "", **_rest(i)}
                        for i in item.get("inputs", ())
                    ],
                    "states": states,
                    "dies_at": None,
                    "run": None,
                    "why": [],
                    "story": [],
                }
            )
        data["inputs"] = data["traces"][0]["inputs"] if data["traces"] else []
        data["groups"] = [
            {
                "error": group["error"],
                "node": group["node"],
                "members": [member + 1 for member in group["members"]],
                "nodes": group["common_nodes"],
                "events": group["common_events"],
            }
            for group in record["groups"]
        ]
        data["refinements"] = record["refinements"]
        count = f"{record['count']} counterexamples{', all there are' if record['exhaustive'] else ', perhaps not all'}"
        data["complete"] = count
        data["story"] = model_story(kind, str(record["property"]), count, "tried" in record)
        data["notes"] = [*map(str, record["notes"]), MORE]
        data["timeline"]["why_empty"] = MORE
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputFileError(f"{name} is not a complete list of counterexamples: {error}") from None
    shown: Data = encodable(data)
    return shown


def _rest(item: dict[str, Any]) -> Data:
    return {"bits": int(item["bits"]), "where": str(item["where"])}


def _state(state: dict[str, Any]) -> Data:
    control = state["control"]
    node = state["stack"][0] if state["stack"] else "(empty stack)"
    address = state.get("address")
    return {
        "kind": str(state["kind"]),
        "node": f"{control}: {node}" if control != "." else str(node),
        "stack": list(map(str, state["stack"])),
        "state": str(state["state"]),
        "values": {str(key): str(value) for key, value in state["values"].items()},
        "events": list(map(str, state["events"])),
        "changes": bool(state["changes"]),
        "notes": [],
        "at": None if address is None else f"{address:#x}",
        "step": None,
    }
