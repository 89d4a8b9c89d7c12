# Self-modification that depends on the input: the input's low byte replaces the immediate of a compare, the second
# input is compared with it. The target is reached when they are equal and the byte is in 0x70..0x7f.
.include "start.inc"
program:
    call choice
    mov byte ptr [compare + 2], al
    mov ecx, eax
    and ecx, 0xf0
    cmp ecx, 0x70
    jne leave_program
    call choice
compare:
    cmp eax, 1
    jne leave_program
    call reached
leave_program:
    ret
