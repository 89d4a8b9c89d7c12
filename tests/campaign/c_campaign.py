"""Verdicts on compiled C against native runs of every input: a truth that shares nothing with our semantics.

A file of random programs (see `generate_c`) is compiled for this machine, where every program is run with every input,
and for an instruction set at some level of optimisation, stripped, for mcveto. PROVED is wrong if a native run hits;
VIOLATED is wrong if the native run with its inputs does not.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from elftools.elf.elffile import ELFFile

from .generate_c import MAX_INPUTS, random_c

ROOT = Path(__file__).parents[2]
TARGETS = (
    *("x86-32", "x86-64", "ppc32-be", "arm", "arm-thumb", "riscv32", "riscv64", "aarch64", "ppc32-le", "mips32-be"),
    *("mips32-le", "arm-be8"),
)
LEVELS = ("-O0", "-O1", "-O2", "-O3")
ENGINES = ("dpg", "dpg", "dpg", "symex", "bmc", "cegar", "simulation", "portfolio")
INPUT_BITS = 8
STUBS = """
static volatile unsigned nothing;
__attribute__((noinline)) unsigned input(void) { return nothing; }
__attribute__((noinline)) void hit(void) { for (;;) nothing = 1; }
void _start(void) { for (;;) nothing = 2; }
"""
# Prints, for each program, the inputs of its first hit in the order of numbers, or nothing.
NATIVE = """
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
static jmp_buf back;
static unsigned values[MAX_INPUTS], used;
unsigned input(void) { return values[used++]; }
void hit(void) { longjmp(back, 1); }
static int hits(void (*program)(void)) {
  used = 0;
  if (setjmp(back)) return 1;
  program();
  return 0;
}
PROTOTYPES
static void (*const programs[])(void) = {PROGRAMS};
int main(int count, char **words) {
  if (count > 1) {
    for (int i = 2; i < count && i - 2 < MAX_INPUTS; i++) values[i - 2] = (unsigned)atoi(words[i]);
    return !hits(programs[atoi(words[1])]);
  }
  for (unsigned n = 0; n < sizeof programs / sizeof *programs; n++) {
    int found = 0;
    for (unsigned a = 0; a < 1 << BITS && !found; a++)
      for (unsigned b = 0; b < 1 << BITS && !found; b++) {
        values[0] = a, values[1] = b;
        found = hits(programs[n]);
        if (used < 2 && !found) break;
      }
    printf("%d\\n", found);
  }
  return 0;
}
"""
COMMON = ("-fwrapv", "-w", "-g0", "-fno-sanitize=undefined", "-fno-strict-aliasing")
BARE = (
    *("-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-fno-pie", "-fno-stack-protector"),
    *(
        "-fno-unwind-tables",
        "-fno-asynchronous-unwind-tables",
        "-Wl,--build-id=none",
        "-Wl,-e,_start",
        "-Wl,--no-gc-sections",
    ),
)


@dataclass
class Counts:
    """Verdicts by engine and by target with its level, and what was wrong."""

    programs: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    builds: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield f"{self.programs} programs, {sum(self.verdicts.values())} verdicts, {len(self.wrong)} wrong"
        for table in (self.verdicts, self.builds):
            for name in sorted({key[0] for key in table}):
                row = {kind: count for (which, kind), count in sorted(table.items()) if which == name}
                yield f"  {name}: " + ", ".join(f"{count} {kind}" for kind, count in row.items())
        for reason, count in self.reasons.most_common(8):
            yield f"  unknown: {count} x {reason}"


@cache
def _targets() -> dict[str, Any]:
    return tomllib.loads((ROOT / "examples" / "targets.toml").read_text())


def _compile(arguments: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *COMMON, *arguments], check=True, capture_output=True)


def native(folder: Path, source: Path, count: int) -> Path:
    """A program that runs one of the programs, or all of them with every input."""
    text = NATIVE.replace("PROTOTYPES", "".join(f"void program{n}(void);\n" for n in range(count)))
    text = text.replace("PROGRAMS", ", ".join(f"program{n}" for n in range(count)))
    text = text.replace("MAX_INPUTS", str(MAX_INPUTS)).replace("BITS", str(INPUT_BITS))
    (folder / "native.c").write_text(text)
    _compile(["-O1", "-fno-builtin", str(folder / "native.c"), str(source), "-o", str(folder / "native")])
    return folder / "native"


def specs(folder: Path, source: Path, target: str, level: str, count: int) -> list[Path]:
    """Builds for a target; one spec for each program."""
    row = _targets()[target]
    # Division is an instruction: there is no library that would have it as a function.
    flags = [flag.replace("+v7a", "+v7a+hwdiv+hwdiv_arm") for flag in row.get("flags", [])]
    (folder / "stubs.c").write_text(STUBS)
    binary = folder / "program.elf"
    _compile(
        [
            *("-target", row["triple"], *BARE, f"-Wl,-z,max-page-size={row.get('page', 0x1000)}"),
            *(*flags, level, str(source), str(folder / "stubs.c")),
            *("-T", str(ROOT / "examples" / "layouts" / "wx.ld"), "-o", str(binary)),
        ]
    )
    with binary.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        symbols = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}
    found = []
    for number in range(count):
        spec = {
            "binary": binary.name,
            "entry": symbols[f"program{number}"],
            "inputs": {"calls": {symbols["input"]: {"bits": INPUT_BITS}}},
            "properties": [{"reach": [symbols["hit"]]}],
        }
        path = folder / f"program{number}.yaml"
        path.write_text(yaml.safe_dump(spec))
        found.append(path)
    return found


def verdict(spec: Path, engine: str, seconds: float, seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "mcveto", "verify", "--spec", str(spec), "--engine", engine, "--json", "-"]
    command += ["--timeout", str(seconds), "--memory", "2000", "--quiet", "--seed", str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    # A claim that the self-check refuses is left where the command runs.
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=spec.parent)
    try:
        return dict(json.loads(done.stdout))
    except json.JSONDecodeError:
        return {"verdict": "crash", "reason": done.stderr[-300:]}


def run_file(seed: int, count: int, seconds: float, keep: Path, counts: Counts) -> None:
    """The programs of one file, each built for another target and asked about once; wrong ones are kept."""
    generator = random.Random(seed)
    target, level = generator.choice(TARGETS), generator.choice(LEVELS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "programs.c"
        source.write_text(random_c(seed, count))
        runner = native(folder, source, count)
        truths = [line == "1" for line in subprocess.check_output([runner], text=True).split()]
        for number, spec in enumerate(specs(folder, source, target, level, count)):
            engine = generator.choice(ENGINES)
            answer = verdict(spec, engine, seconds, seed)
            kind = answer["verdict"]
            counts.programs += 1
            counts.verdicts[engine, kind] += 1
            counts.builds[f"{target} {level}", kind] += 1
            problem = ""
            if kind == "unknown":
                counts.reasons[str(answer["reason"])[:60]] += 1
            elif kind == "crash":
                problem = f"crash: {answer['reason']}"
            elif kind == "proved" and truths[number]:
                problem = "PROVED, but a native run hits"
            elif kind == "violated":
                values = [str(int(item["value"]) & 0xFF) for item in answer["inputs"]]
                if subprocess.run([runner, str(number), *values], check=False).returncode != 0:
                    problem = f"VIOLATED with {values}, but the native run does not hit"
            if problem:
                counts.wrong.append(f"seed {seed} program {number} {target} {level} {engine}: {problem}")
                saved = keep / f"c-{seed}-{number}"
                saved.mkdir(parents=True, exist_ok=True)
                for file in (source, folder / "program.elf", spec):
                    (saved / file.name).write_bytes(file.read_bytes())
