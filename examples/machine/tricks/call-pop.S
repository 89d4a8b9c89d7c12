# Reading the program counter: the `call` of the next instruction is not a call that returns.
.include "common.inc"
_start:
    call here
here:
    pop ebx
    cmp ebx, offset here
    jne bad
.att_syntax
    leal there - here(%ebx), %eax
.intel_syntax noprefix
    jmp eax
    jmp bad
there:
    mov dword ptr [result], 5
    jmp halt
