# Instruction aliasing: one byte into `mov ecx, 0x5ad0ff52` the same bytes read `push edx; call eax; pop edx`. The
# first pass runs the `mov`, the second enters one byte later and so calls `add_in`, which adds the pushed 4 to a
# total that is 3 or 4 depending on the sign of the input.
.include "start.inc"
program:
    push ebp
    mov ebp, esp
    push edx
    call choice
    mov dword ptr [total], 4
    test eax, eax
    jns positive
    mov dword ptr [total], 3
positive:
    mov eax, 2
    mov edx, 4
aliased:
    mov ecx, 0x5ad0ff52
    cmp eax, 1
    je done
    mov eax, offset add_in
    mov ecx, offset aliased + 1
    jmp ecx
done:
    mov eax, dword ptr [total]
#if REACH
    cmp eax, 7
    jne leave_program
#else
    cmp eax, 7
    je leave_program
    cmp eax, 8
    je leave_program
#endif
    call reached
leave_program:
    pop edx
    mov esp, ebp
    pop ebp
    ret

add_in:                             # total += argument; returns 1
    push ebp
    mov ebp, esp
    mov eax, dword ptr [ebp + 8]
    add dword ptr [total], eax
    mov eax, 1
    mov esp, ebp
    pop ebp
    ret
.bss
.balign 4
total: .skip 4
