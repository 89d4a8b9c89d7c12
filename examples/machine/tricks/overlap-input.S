# Input bit 0 chooses between the two instruction streams of one byte sequence: through the front door eax becomes
# 0x...; through the middle the same bytes are `inc eax` four times. The target needs the middle and input 0x61.
.include "common.inc"
_start:
    call input
    movzx eax, al
    mov ecx, eax
    and ecx, 1
    lea edx, [door + ecx]
    jmp edx
door:
    mov eax, 0x40404040       # b8 40 40 40 40
    mov dword ptr [result], eax
    cmp eax, 0x65
    je bad
    jmp halt
