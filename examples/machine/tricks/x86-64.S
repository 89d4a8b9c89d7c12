# What differs in 64-bit mode: 32-bit writes clear the upper half (also of a cmov that does not move), rip-relative
# addresses, sign-extended immediates, r8-r15, 8- and 16-bit writes that keep the rest.
.intel_syntax noprefix
.globl _start, halt, bad, result
.text
_start:
    mov rax, -1
    mov eax, eax              # 0x00000000ffffffff
    mov rbx, -1
    xor ecx, ecx
    cmp ecx, 1
    cmove ebx, ecx            # not moved, upper half cleared
    cmp rax, rbx
    jne bad
    mov r8, 0x1122334455667788
    mov r8b, 0xff             # 0x11223344556677ff
    mov r8w, 0x0102           # 0x1122334455660102
    mov rdx, r8
    shr rdx, 32
    add edx, r8d              # 0x11223344 + 0x55660102 = 0x66883446
    mov r9, qword ptr [rip + constant]
    cmp r9, -2
    jne bad
    lea r10, [rip + store]
    jmp r10
    jmp bad
store:
    mov dword ptr [rip + result], edx
    movsxd r11, dword ptr [rip + constant]
    cmp r11, -2
    jne bad
halt:
    jmp halt
bad:
    jmp halt
.section .rodata
.balign 8
constant: .quad -2
.bss
.balign 8
result: .skip 4
