# Copies as many input bytes as the first input byte says (at most 15) into an 8-byte buffer on the stack. The return
# address is 12 bytes above the buffer, so three of its four bytes can be chosen.
.include "common.inc"
_start:
    call reader
    mov dword ptr [result], eax
    jmp halt
reader:
    push ebx
    sub esp, 8
    call input
    and eax, 15
    mov ebx, eax
    mov edi, esp
next:
    test ebx, ebx
    jz finished
    call input
    mov byte ptr [edi], al
    inc edi
    dec ebx
    jmp next
finished:
    mov eax, dword ptr [esp]
    add esp, 8
    pop ebx
    ret
