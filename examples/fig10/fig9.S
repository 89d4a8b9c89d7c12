# The return address is replaced by a value computed from the input: for even inputs it is the address of `bar`, for
# odd ones the address it was before. The target is reached only through a `ret` that serves as a call.
.include "start.inc"
program:
    call foo
after:
    ret

bar:
    call reached
    jmp halt

foo:
    push ebp
    mov ebp, esp
    sub esp, 8
    call choice
    and eax, 1
    mov dword ptr [ebp - 8], eax            # b
    mov ecx, eax
    imul ecx, ecx, offset after
    mov edx, 1
    sub edx, dword ptr [ebp - 8]
    imul edx, edx, offset bar
    add ecx, edx
    mov dword ptr [ebp - 4], ecx            # r = b * after + (1 - b) * bar
    lea eax, [ebp - 4]
    mov dword ptr [eax + 8], ecx            # *(&r + 2) = r
    mov esp, ebp
    pop ebp
    ret
