# The store changes the very next instruction, in the same basic block: `mov eax, 1` becomes `mov eax, 42`.
.include "common.inc"
_start:
    mov byte ptr [patched + 1], 42
patched:
    mov eax, 1
    mov dword ptr [result], eax
    cmp eax, 42
    jne bad
    jmp halt
