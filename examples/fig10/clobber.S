# Stores the address of `bar` into a two-word array on the stack at an index from the outside. The return address is
# the fourth word above the array's start: index 0 and 1 are the array, 2 the saved ebp, 3 the return address.
#   CASE 4: every index below an input of at most 10     CASE 8: one index of at most 10     CASE 9: one index below 2
.include "start.inc"
program:
    call foo
    ret

bar:
    call reached
    jmp halt

foo:
    push ebp
    mov ebp, esp
    sub esp, 8
    call choice
    cmp eax, 0
    jl leave_foo
#if CASE == 9
    cmp eax, 1
#else
    cmp eax, 10
#endif
    jg leave_foo
#if CASE == 4
    xor ecx, ecx
again:
    cmp ecx, eax
    jge leave_foo
    mov dword ptr [ebp + ecx * 4 - 8], offset bar
    inc ecx
    jmp again
#else
    mov dword ptr [ebp + eax * 4 - 8], offset bar
#endif
leave_foo:
    mov esp, ebp
    pop ebp
    ret
