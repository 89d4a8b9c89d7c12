# Reading the program counter: `call` of the next instruction is not a call that returns. Also pushes an address and
# "returns" to it.
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
    push eax
    ret
    jmp bad
there:
    mov dword ptr [result], 5
    jmp halt
