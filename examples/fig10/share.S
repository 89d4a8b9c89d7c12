# Two procedures that share their tail: `add_two` falls into the middle of `add_one`, and both leave through the same
# clamp and `ret`. The value never exceeds ten, however often they are called.
.include "start.inc"
program:
    push ebp
    mov ebp, esp
    push 0                          # the value, at [ebp - 4]
again:
    call choice
    test al, 1
    jz one
    push dword ptr [ebp - 4]
    call add_two
    jmp store
one:
    push dword ptr [ebp - 4]
    call add_one
store:
    add esp, 4
    mov dword ptr [ebp - 4], eax
    cmp eax, 10
    jbe fine
    call reached
fine:
    call choice
    test eax, eax
    jnz again
    mov esp, ebp
    pop ebp
    ret

add_two:
    push ebp
    mov ebp, esp
    mov eax, dword ptr [ebp + 8]
    inc eax
    jmp increment

add_one:
    push ebp
    mov ebp, esp
    mov eax, dword ptr [ebp + 8]
increment:
    inc eax
    cmp eax, 10
    jbe small
    mov eax, 10
small:
    mov esp, ebp
    pop ebp
    ret
