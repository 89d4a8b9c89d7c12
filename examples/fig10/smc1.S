# Self-modifying loop of six turns: flips one instruction between `inc eax` (40) and `dec eax` (48) on every turn, so
# that eax alternates between 1 and 0.
.include "start.inc"
program:
    push ebp
    mov ebp, esp
    xor eax, eax
    mov ecx, 6
again:
flipped:
    inc eax
    xor byte ptr [flipped], 8
    dec ecx
    jnz again
#if REACH
    test eax, eax
    jnz leave_program
#else
    cmp eax, 1
    jbe leave_program
#endif
    call reached
leave_program:
    mov esp, ebp
    pop ebp
    ret
