# A return that was never called: the target of the jump is pushed and "returned" to.
.include "common.inc"
_start:
    mov eax, offset there
    push eax
    ret
    jmp bad
there:
    mov dword ptr [result], 6
    jmp halt
