# Tries to overwrite its own code, which lies in a read-only page: the store faults.
.include "common.inc"
_start:
    mov byte ptr [patched], 0x90
    mov byte ptr [patched + 1], 0x90
patched:
    jmp halt
    jmp bad
