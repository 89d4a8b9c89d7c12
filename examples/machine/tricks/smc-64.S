# Self-modification in 64-bit mode: the input's low byte becomes the displacement of the next instruction's load, the
# second store, through a rip-relative pointer, turns a `nop` into `inc al`.
.intel_syntax noprefix
.globl _start, halt, bad, result, input
.text
input:
    xor eax, eax
    ret
bad:
    nop
halt:
    jmp halt
_start:
    call input
    and al, 3
    lea rbx, [rip + numbers]
    mov byte ptr [rip + load + 3], al
load:
    movzx eax, byte ptr [rbx + 1]
    mov word ptr [rip + patched], 0xc0fe
patched:
    .byte 0x66, 0x90
    mov dword ptr [rip + result], eax
    cmp eax, 32
    je bad
    jmp halt
numbers: .byte 10, 20, 31, 40
.bss
.balign 4
result: .skip 4
