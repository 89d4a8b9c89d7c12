# Divides one input by another: faults when the divisor is 0 or the quotient does not fit, else the remainder is
# smaller in magnitude than the divisor and the target is unreachable.
.include "common.inc"
_start:
    call input
    mov ebx, eax
    call input
    mov ecx, eax
    mov eax, ebx
    cdq
    idiv ecx
    mov dword ptr [result], edx
    imul eax, ecx
    add eax, edx
    cmp eax, ebx
    jne bad
    jmp halt
