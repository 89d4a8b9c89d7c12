# The low two bits of the input choose the opcode that is patched in: inc, dec, nop or `jmp` to the target. Only the
# last reaches it.
.include "common.inc"
_start:
    call input
    and eax, 3
    movzx eax, word ptr [choices + eax * 2]
    mov word ptr [patched], ax
    mov eax, 100
patched:
    ud2
    mov dword ptr [result], eax
    jmp halt
    .balign 16, 0x90
    jmp bad
choices:
    .byte 0x40, 0x90        # inc eax; nop
    .byte 0x48, 0x90        # dec eax; nop
    .byte 0x90, 0x90        # nop; nop
    .byte 0xeb, choices - 5 - patched - 2
