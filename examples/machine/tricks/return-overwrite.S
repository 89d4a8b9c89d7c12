# The callee stores an input-selected address over its own return address when the input is 0x41.
.include "common.inc"
_start:
    call victim
    mov dword ptr [result], 1
    jmp halt
victim:
    call input
    cmp al, 0x41
    jne done
    mov dword ptr [esp], offset bad
done:
    ret
