# Two instruction streams over the same bytes. Falling in executes `mov eax, 0x05eb05eb`; the second time the jump
# enters one byte later, where the same bytes read `jmp`, and skips the `mov ecx, 0` that the first stream runs.
.include "common.inc"
_start:
    mov ecx, 7
    xor edx, edx
outer:
    .byte 0xb8                # mov eax, imm32
inner:
    jmp after                 # eb 05: first half of the immediate
    .byte 0xeb, 0x05
    mov ecx, 0                # the first stream comes here
after:
    inc edx
    cmp edx, 2
    jb again
    mov dword ptr [result], ecx
    test ecx, ecx
    jz bad
    jmp halt
again:
    mov ecx, 9
    jmp inner
