"""Stands in for a verifier of C programs: compiles the task, runs it once with given inputs, reports as CBMC does.

python fake_verifier.py VALUES FILE     VALUES: 1,2,3 for the inputs in order; the rest of the state is zero
python fake_verifier.py safe FILE       only claims that nothing is wrong
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_VALUES = """\
#include <stdio.h>
static unsigned long long fake_next(void) {{
  static const unsigned long long values[] = {{{values}}};
  static unsigned at;
  return at < sizeof values / sizeof *values ? values[at++] : 0;
}}
unsigned char __VERIFIER_nondet_uchar(void) {{ return 0; }}
unsigned short __VERIFIER_nondet_ushort(void) {{ return 0; }}
unsigned int __VERIFIER_nondet_uint(void) {{ return 0; }}
"""
_INPUT = "mc_taken = mc_any(bits);"
_RECORDED = """mc_taken = fake_next() & (bits < 64 ? ((u64)1 << bits) - 1 : ~(u64)0);
  printf("State 7 file program.c function mc_input line 9 thread 0\\n");
  printf("  mc_taken=%lluull (0)\\n", (unsigned long long)mc_taken);
  fflush(stdout);"""


def main(arguments: list[str]) -> int:
    mode, file = arguments
    if mode == "safe":
        print("** 0 of 1 failed\nVERIFICATION SUCCESSFUL")
        return 0
    source = Path(file)
    text = source.read_text()
    assert text.count(_INPUT) == 1
    instrumented = source.with_name("instrumented.c")
    instrumented.write_text(_VALUES.format(values=mode) + text.replace(_INPUT, _RECORDED))
    program = source.with_name("instrumented.exe")
    subprocess.run(["gcc", "-std=gnu11", "-w", str(instrumented), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=60)
    print("State 1 file program.c function __CPROVER_initialize line 1 thread 0\n  mc_taken=0ull (0)")
    print(done.stdout)
    failed = "reach_error" in done.stderr or done.returncode < 0
    print("VERIFICATION FAILED" if failed else "VERIFICATION SUCCESSFUL")
    return 10 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
