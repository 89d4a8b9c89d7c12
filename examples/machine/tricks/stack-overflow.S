# Recursion without end: the stack runs out and the store faults below it; what follows the call is never reached.
.include "common.inc"
_start:
    call deeper
    jmp bad
deeper:
    push ebx
    inc dword ptr [result]
    call deeper
    pop ebx
    ret
