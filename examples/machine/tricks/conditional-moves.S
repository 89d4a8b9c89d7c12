# The larger of two inputs as signed numbers, computed once with cmov and once with setcc: they agree always.
.include "common.inc"
_start:
    call input
    mov ebx, eax
    call input
    mov ecx, eax
    mov edx, ebx
    cmp ebx, ecx
    cmovl edx, ecx            # edx = max
    xor eax, eax
    cmp ebx, ecx
    setl al
    neg eax
    mov esi, ebx
    xor esi, ecx
    and esi, eax
    xor esi, ebx              # esi = max
    mov dword ptr [result], esi
    cmp esi, edx
    jne bad
    jmp halt
