# The input becomes the immediate of an `and`; a second mask keeps the result below 16 whatever is patched in.
.include "common.inc"
_start:
    call input
    mov byte ptr [patched + 2], al
    call input
patched:
    and eax, 0
    and eax, 15
    mov dword ptr [result], eax
    cmp eax, 16
    jae bad
    jmp halt
