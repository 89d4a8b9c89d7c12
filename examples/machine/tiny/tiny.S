# Ten instructions: 1 + 2 + ... + 5, stored into memory.
.intel_syntax noprefix
.globl _start, halt, result
.text
_start:
    mov ecx, 5
    xor eax, eax
again:
    add eax, ecx
    dec ecx
    jnz again
    mov edx, eax
    shl edx, 1
    sub edx, eax
    mov dword ptr [result], edx
halt:
    jmp halt
.bss
.balign 4
result: .skip 4
