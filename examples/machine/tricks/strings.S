# String instructions with repeat prefixes, forwards and backwards.
.include "common.inc"
_start:
    cld
    mov edi, offset buffer
    mov eax, 0x01020304
    mov ecx, 6
    rep stosd
    mov esi, offset text
    mov edi, offset buffer
    mov ecx, 11
    rep movsb
    mov edi, offset buffer    # find the 'y'
    mov al, 'y'
    mov ecx, 24
    repne scasb
    jne bad
    sub edi, offset buffer    # 9
    mov ebx, edi
    mov esi, offset text
    mov edi, offset buffer
    mov ecx, 24
    repe cmpsb                # differs at index 11 (0 against 1)
    sub esi, offset text      # 12
    imul ebx, esi
    std
    mov esi, offset text + 8
    lodsb                     # 'y'
    mov edi, offset buffer + 20
    mov ecx, 3
    rep stosb
    cld
    mov ecx, 0
    rep movsd                 # no effect
    movzx ecx, byte ptr [buffer + 18]
    add ebx, ecx              # 9 * 12 + 'y'
    mov dword ptr [result], ebx
    cmp ebx, 229
    jne bad
    jmp halt
.section .rodata
text: .ascii "directedy-!\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
.bss
buffer: .skip 32
