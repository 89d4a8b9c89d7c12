"""Results as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), for binaries.

Places are `address` objects: every instruction that is mentioned is an entry of the run's `addresses`, its parent the
function it is in (if the file has symbols) or the module. A result stands for one way of being wrong at one place;
each of its counterexamples is a code flow with one thread flow, whose initial state are the inputs. What was proved has
kind "pass", what is not known kind "open". There are no times of day in it: the same command writes the same file.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from mcveto.report.result import AskedProperty, Block, ModelRun, Reported, ReportedRun

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
MAX_STEPS_LISTED = 4_000
_EXIT_CODES = {
    0: "proved",
    2: "wrong usage",
    3: "unreadable input file",
    5: "not known",
    10: "violated",
    70: "internal error",
}
_WAYS = {
    "call": ("call", "calls {}"),
    "return": ("return", "returns to {}"),
    "branch": ("branch", "branches to {}"),
    "no branch": ("branch", "does not branch"),
    "jump": ("branch", "jumps to {}"),
}


def sarif_log(reported: Reported) -> dict[str, Any]:
    return {"$schema": SCHEMA, "version": VERSION, "runs": [_Run(reported).run()]}


class _Run:
    def __init__(self, reported: Reported) -> None:
        self._reported = reported
        self._module = reported.module
        self._addresses: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._rules = {item.name: number for number, item in enumerate(reported.properties)}

    def run(self) -> dict[str, Any]:
        reported = self._reported
        results = list(self._results())
        driver = {
            "name": "mcveto",
            "version": reported.version,
            "semanticVersion": reported.version,
            "rules": [_rule(item) for item in reported.properties],
        }
        run: dict[str, Any] = {
            "tool": {"driver": driver},
            "invocations": [self._invocation()],
            "results": results,
        }
        if self._module is not None:
            run["artifacts"] = [self._artifact()]
        if self._addresses:
            run["addresses"] = self._addresses
        if reported.more:
            run["properties"] = {"moreCounterexamples": reported.more}
        return run

    def _artifact(self) -> dict[str, Any]:
        assert self._module is not None
        artifact: dict[str, Any] = {
            "location": {"uri": _uri(self._module.path)},
            "roles": ["analysisTarget"],
            "mimeType": "application/octet-stream" if self._module.isa else "text/plain",
        }
        if self._module.sha256:
            artifact["hashes"] = {"sha-256": self._module.sha256}
        return artifact

    def _invocation(self) -> dict[str, Any]:
        reported = self._reported
        remarks = [("assumption", text) for text in reported.assumptions] + [("note", text) for text in reported.notes]
        return {
            "commandLine": shlex.join(reported.command),
            "arguments": list(reported.command[1:]),
            "exitCode": reported.exit_code,
            "exitCodeDescription": _EXIT_CODES.get(reported.exit_code, "unexpected"),
            "executionSuccessful": reported.exit_code in (0, 5, 10),
            "toolExecutionNotifications": [
                {"descriptor": {"id": kind}, "level": "note", "message": {"text": text}} for kind, text in remarks
            ],
        }

    # Results.

    def _results(self) -> Iterable[dict[str, Any]]:
        reported = self._reported
        groups: dict[tuple[str, str, int], list[ReportedRun]] = {}
        for run in reported.runs:
            groups.setdefault((run.about, run.error, run.at), []).append(run)
        for runs in groups.values():
            yield self._failure(runs)
        ends: dict[tuple[str, str, str], list[ModelRun]] = {}
        for model_run in reported.model_runs:
            node = model_run.steps[-2].stack[0] if len(model_run.steps) > 1 and model_run.steps[-2].stack else ""
            ends.setdefault((model_run.about, model_run.error, node), []).append(model_run)
        for (_, _, node), model_runs in ends.items():
            yield self._model_failure(node, model_runs)
        shown = {run.about for run in reported.runs} | {run.about for run in reported.model_runs}
        for item in reported.properties:
            if item.name in shown:
                continue
            if reported.kind == "violated" and reported.about == item.name:
                yield self._other(item, "fail", f"violated: {reported.reason or item.about}")
            elif reported.kind == "proved":
                yield self._other(item, "pass", f"proved: no run violates {item.name}")
            elif reported.kind == "unknown":
                yield self._other(item, "open", f"not known: {reported.reason}")
            else:
                yield self._other(item, "open", f"not decided: the search ended with a violation of {reported.about}")

    def _failure(self, runs: Sequence[ReportedRun]) -> dict[str, Any]:
        first = runs[0]
        count = f" ({len(runs)} ways)" if len(runs) > 1 else ""
        inputs = ", ".join(str(item.value) for item in first.inputs[:8]) + (", …" if len(first.inputs) > 8 else "")
        given = f"with inputs {inputs}" if first.inputs else "with every input"
        place = self._module.shown(first.at) if self._module is not None else hex(first.at)
        text = f"{first.error} at {place}, {given}{count}"
        name, offset = self._module.name_of(first.at) if self._module is not None else ("", 0)
        where = f"{name}+{offset:#x}" if name else hex(first.at - (self._module.base if self._module else 0))
        sha256 = self._module.sha256 if self._module is not None else ""
        return {
            **self._head(first.about, "fail", text),
            "locations": [self._location(first.at)],
            "codeFlows": [self._code_flow(run) for run in runs],
            "partialFingerprints": {"violation/v1": _digest(first.about, first.error, where)},
            "fingerprints": {"mcveto/v1": _digest(first.about, first.error, hex(first.at), sha256)},
            "occurrenceCount": len(runs),
            "properties": {
                "inputs": [
                    [{"value": item.value, "bits": item.bits, "where": item.where} for item in run.inputs]
                    for run in runs
                ],
                "confirmedBy": list(first.confirmed_by),
            },
        }

    def _head(self, rule: str, kind: str, text: str) -> dict[str, Any]:
        head: dict[str, Any] = {"ruleId": rule, "kind": kind, "message": {"text": text}}
        if rule in self._rules:
            head["ruleIndex"] = self._rules[rule]
        head["level"] = "error" if kind == "fail" else "none"
        return head

    def _other(self, item: AskedProperty, kind: str, text: str) -> dict[str, Any]:
        """A result without a run."""
        result = self._head(item.name, kind, text)
        if self._module is not None and self._module.isa:
            result["locations"] = [self._location(place) for place in item.places or (self._module.entry,)]
        elif self._module is not None:
            result["locations"] = [{"physicalLocation": {"artifactLocation": self._file()}}]
        sha256 = self._module.sha256 if self._module is not None else ""
        result["partialFingerprints"] = {"violation/v1": _digest(item.name, kind)}
        result["fingerprints"] = {"mcveto/v1": _digest(item.name, kind, sha256)}
        return result

    def _code_flow(self, run: ReportedRun) -> dict[str, Any]:
        blocks = run.blocks
        omitted = len(blocks) - MAX_STEPS_LISTED
        steps = list(enumerate(blocks))
        if omitted > 0:
            steps = steps[: MAX_STEPS_LISTED // 2] + steps[-MAX_STEPS_LISTED // 2 :]
        state: dict[str, str] = {}
        locations = []
        for number, block in steps:
            locations.append(self._step(number, block, state, number == len(blocks) - 1, run))
            state = dict(block.states)
        if not locations:
            locations = [{"location": self._location(run.at), "importance": "essential", "executionOrder": 1}]
        flow: dict[str, Any] = {
            "message": {"text": run.error},
            "initialState": {
                f"input {number}": {"text": f"{item.value} ({item.bits} bits, {item.where})"}
                for number, item in enumerate(run.inputs)
            },
            "locations": locations,
        }
        if omitted > 0:
            flow["properties"] = {"omittedSteps": omitted}
        return {"threadFlows": [flow]}

    def _step(
        self, number: int, block: Block, before: dict[str, str], is_last: bool, run: ReportedRun
    ) -> dict[str, Any]:
        said = list(block.events)
        changed = {name: value for name, value in block.states.items() if before.get(name) != value}
        said += [f"{name} is {value}" for name, value in changed.items()] if before or block.events else []
        kind, template = _WAYS.get(block.way, ("", ""))
        if block.result is not None:
            said.append(f"input {block.result[2]}")
        elif template and not is_last:
            place = self._module.shown(block.next_pc) if self._module is not None else hex(block.next_pc)
            said.append(template.format(place))
        if is_last:
            said.append(run.error)
        essential = is_last or bool(block.events) or block.result is not None
        step: dict[str, Any] = {
            "location": {**self._location(block.pc), "message": {"text": "; ".join(said) or block.text}},
            "nestingLevel": block.depth,
            "executionOrder": number + 1,
            "importance": "essential" if essential else "unimportant" if block.way == "fall" else "important",
        }
        kinds = [*([kind] if kind else []), *(["danger"] if is_last else [])]
        if kinds:
            step["kinds"] = kinds
        if changed:
            step["state"] = {name: {"text": value} for name, value in changed.items()}
        return step

    # Places.

    def _file(self) -> dict[str, Any]:
        assert self._module is not None
        return {"uri": _uri(self._module.path), "index": 0}

    def _location(self, pc: int) -> dict[str, Any]:
        assert self._module is not None
        number = self._address(pc)
        location: dict[str, Any] = {
            "physicalLocation": {"artifactLocation": self._file(), "address": {**self._addresses[number]}}
        }
        name, _ = self._module.name_of(pc)
        if name:
            function = {"name": name, "fullyQualifiedName": name, "kind": "function"}
            location["logicalLocations"] = [function]
        return location

    def _address(self, pc: int) -> int:
        """The number of an instruction in the run's list of addresses, with its parents."""
        assert self._module is not None
        module = self._module
        top = self._entry("module", module.base, {"name": module.path.rpartition("/")[2], "kind": "module"})
        self._addresses[top]["length"] = module.end - module.base
        parent, (name, offset) = top, module.name_of(pc)
        if name:
            parent = self._entry("function", pc - offset, {"name": name, "kind": "function", "parentIndex": top})
            self._addresses[parent]["offsetFromParent"] = pc - offset - module.base
        start = self._addresses[parent]["absoluteAddress"]
        more = {"kind": "instruction", "parentIndex": parent, "offsetFromParent": pc - start}
        return self._entry("instruction", pc, {**more, "fullyQualifiedName": module.shown(pc)})

    def _entry(self, kind: str, address: int, more: dict[str, Any]) -> int:
        number = self._numbers.get((kind, address))
        if number is None:
            number = self._numbers[kind, address] = len(self._addresses)
            relative = address - self._module.base if self._module is not None else 0
            self._addresses.append({"absoluteAddress": address, "relativeAddress": relative, "index": number, **more})
        return number

    # Models.

    def _model_failure(self, node: str, runs: Sequence[ModelRun]) -> dict[str, Any]:
        first = runs[0]
        meaning = first.meaning or first.error
        count = f" ({len(runs)} ways)" if len(runs) > 1 else ""
        flows = []
        for run in runs:
            steps = [
                {
                    "location": {
                        "logicalLocations": [{"fullyQualifiedName": " ".join(step.stack) or "(empty stack)"}],
                        "message": {"text": "; ".join([*step.events, step.state])},
                    },
                    "nestingLevel": max(len(step.stack) - 1, 0),
                    "executionOrder": number + 1,
                    "importance": "essential" if step.changes or step.events else "unimportant",
                    "state": {run.about: {"text": step.state}},
                    "kinds": [step.kind],
                }
                for number, step in enumerate(run.steps)
            ]
            flows.append({"threadFlows": [{"message": {"text": run.error}, "locations": steps}]})
        file = {"physicalLocation": {"artifactLocation": self._file()}} if self._module is not None else {}
        return {
            **self._head(first.about, "fail", f"{meaning} at {node or 'the end'}{count}"),
            "locations": [{**file, "logicalLocations": [{"fullyQualifiedName": node or "(empty stack)"}]}],
            "codeFlows": flows,
            "partialFingerprints": {"violation/v1": _digest(first.about, first.error, node)},
            "occurrenceCount": len(runs),
        }


def _rule(item: AskedProperty) -> dict[str, Any]:
    return {
        "id": item.name,
        "name": "".join(part.capitalize() for part in item.name.replace("_", "-").split("-")),
        "shortDescription": {"text": item.about or item.name},
        "fullDescription": {"text": item.about or item.name},
        "defaultConfiguration": {"level": "error"},
    }


def _uri(path: str) -> str:
    return ("file://" if path.startswith("/") else "") + quote(path, errors="replace")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]
