# Like smc1, but an input decides after every turn whether to go on: the proof needs to relate the instruction's byte
# to the register it changes.
.include "start.inc"
program:
    push ebx
    xor ebx, ebx
again:
flipped:
    inc ebx
    xor byte ptr [flipped], 8
    call choice
    test eax, eax
    jnz again
    cmp ebx, 1
    jbe leave_program
    call reached
leave_program:
    pop ebx
    ret
