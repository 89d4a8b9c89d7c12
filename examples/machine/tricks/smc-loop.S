# A loop that rewrites the immediate of its own `add` on every turn: adds 1, 2, ..., 10.
.include "common.inc"
_start:
    xor eax, eax
    mov ecx, 10
again:
    add eax, 1
    inc byte ptr [again + 2]
    dec ecx
    jnz again
    mov dword ptr [result], eax
    cmp eax, 55
    jne bad
    jmp halt
