"""Verdicts on drivers that were changed at random, against millions of native runs with random inputs.

Simulation answers for code that no other engine gets through, mostly without a certificate: this is what looks for its
mistakes. The C text is compiled for this machine, with locks that end the run at a violation and inputs that favour the
numbers in the text, and for PowerPC, for mcveto. PROVED is wrong if a native run violates. That none does proves
nothing; VIOLATED is replayed by mcveto itself. A proof that the self-check refuses is a mistake as well.
"""

from __future__ import annotations

import importlib
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from .c_campaign import ROOT, Counts, verdict
from .driver_mutations import mutated

sys.path.append(str(ROOT / "tools"))
# Tools, and no part of the package.
build_examples = importlib.import_module("build_examples")
large_driver = importlib.import_module("large_driver")

ENGINES = ("simulation", "dpg")
LEVELS = ("O0", "O1", "O2")
LINES = 400
# Ends with code 1 at a violation, and says which inputs lead there.
NATIVE = """
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "air.h"
extern char __data_start[], _end[];
int held;
word interrupts = 1;
static sigjmp_buf back;
struct own { unsigned long long random; int count, most, numbers; word number[4096], input[256]; };
static struct own *own; /* on the heap: what is static begins anew with every run */
static unsigned long long drawn(void) {
  own->random ^= own->random << 13, own->random ^= own->random >> 7, own->random ^= own->random << 17;
  return own->random;
}
int choice(void) {
  word value, way = drawn() % 16;
  if (own->count >= own->most) siglongjmp(back, 1);
  if (way < 5) value = drawn() % 4;
  else if (way < 8 && own->numbers) value = own->number[drawn() % own->numbers] + drawn() % 3 - 1;
  else if (way < 10) value = 1u << drawn() % 32;
  else if (way < 12) value = drawn() & drawn();
  else value = way < 14 ? drawn() % 64 : drawn();
  return own->input[own->count++] = value;
}
void reached(void) {
  for (int i = 0; i < own->count; i++) printf("%u ", own->input[i]);
  fflush(stdout);
  _Exit(1);
}
void spin_lock(void) { if (held) reached(); held = 1; }
void spin_unlock(void) { if (!held) reached(); held = 0; }
void spin_lock_irq(void) { interrupts = 0; spin_lock(); }
void spin_unlock_irq(void) { spin_unlock(); interrupts = 1; }
word spin_lock_irqsave(void) { word flags = interrupts; interrupts = 0; spin_lock(); return flags; }
void spin_unlock_irqrestore(word flags) { spin_unlock(); interrupts = flags; }
static void fault(int signal) { siglongjmp(back, 1); }
int main(int count, char **words) {
  struct own *mine = calloc(1, sizeof *mine);
  size_t size = _end - __data_start;
  char *begin = malloc(size);
  mine->random = 88172645463325252ull ^ strtoull(words[2], 0, 10) * 0x9E3779B97F4A7C15ull;
  for (int i = 3; i < count && mine->numbers < 4096; i++) mine->number[mine->numbers++] = strtoul(words[i], 0, 10);
  signal(SIGSEGV, fault), signal(SIGFPE, fault);
  memcpy(begin, __data_start, size);
  while (clock() < atof(words[1]) * CLOCKS_PER_SEC)
    for (int i = 0; i < 1000; i++) {
      memcpy(__data_start, begin, size);
      own = mine;
      mine->count = 0, mine->most = 20 + drawn() % 100;
      if (!sigsetjmp(back, 1)) { program(); spin_lock(); spin_unlock(); }
    }
  return 0;
}
"""


def native_violation(folder: Path, text: str, seconds: float, seed: int) -> bool:
    """Whether some native run breaks the discipline; raises CalledProcessError where the text is no program."""
    (folder / "driver.c").write_text(text)
    (folder / "native.c").write_text(NATIVE)
    command = [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-O1",
        "-w",
        "-fwrapv",
        "-fno-strict-aliasing",
        "-fno-sanitize=undefined",
    ]
    command += ["-I", str(ROOT / "examples" / "air"), str(folder / "driver.c"), str(folder / "native.c")]
    subprocess.run([*command, "-o", str(folder / "native")], check=True, capture_output=True)
    numbers = sorted(set(re.findall(r"\b\d+(?=u\b)", text)), key=int)
    native = [str(folder / "native"), str(seconds), str(seed), *numbers]
    done = subprocess.run(native, capture_output=True, text=True)
    if done.returncode not in (0, 1):  # it has destroyed what it would say
        raise subprocess.CalledProcessError(done.returncode, native)
    return done.returncode == 1


def run_driver(seed: int, seconds: float, running: float, keep: Path, counts: Counts) -> None:
    """One driver, changed once or twice, and asked about once; a wrong verdict is kept."""
    draw = random.Random(f"driver/{seed}")
    kind, level, engine = draw.choice(large_driver.KINDS), draw.choice(LEVELS), draw.choice(ENGINES)
    statements = int(LINES / large_driver.LINES_PER_STATEMENT["O1"])
    text, what = mutated(large_driver.program(seed, statements, kind, False), draw)
    if draw.random() < 0.3:
        text, more = mutated(text, draw)
        what = f"{what}; {more}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            is_violated = native_violation(folder, text, running, seed)
            spec = large_driver.compile_driver(folder, f"{kind}-{seed}", text, level, {})
        except (subprocess.CalledProcessError, build_examples.BuildError):
            return  # what is changed is no program any more
        answer = verdict(spec, engine, seconds, 0)
        said = str(answer["verdict"])
        counts.programs += 1
        counts.verdicts[engine, f"{said} of {'violated' if is_violated else 'unviolated'}"] += 1
        counts.builds[f"{kind} {level}", said] += 1
        if said == "unknown":
            counts.reasons[str(answer["reason"])[:60]] += 1
        is_refused = str(answer.get("reason")).startswith("self-check failed")
        if said == "crash" or is_refused or (said == "proved" and is_violated):
            counts.wrong.append(f"seed {seed} {kind} {level} {engine}: {said}, {what}")
            saved = keep / f"driver-{seed}"
            saved.mkdir(parents=True, exist_ok=True)
            for file in (folder / "driver.c", spec, spec.with_suffix(".elf")):
                (saved / file.name).write_bytes(file.read_bytes())
