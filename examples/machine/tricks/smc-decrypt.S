# The routine is stored xor-ed with a key and decoded before it is called; the key is an input byte. Only key 0x5a
# gives code that returns 77; the program runs the routine only then.
.include "common.inc"
_start:
    call input
    cmp al, 0x5a
    jne halt
    mov ecx, 6
    mov esi, offset coded
decode:
    xor byte ptr [esi], al
    inc esi
    loop decode
    call coded
    mov dword ptr [result], eax
    cmp eax, 77
    je bad
    jmp halt
coded:                        # mov eax, 77; ret
    .byte 0xb8 ^ 0x5a, 77 ^ 0x5a, 0x5a, 0x5a, 0x5a, 0xc3 ^ 0x5a
