# Jumps to code bytes that lie in writable, non-executable memory: a fault, not an execution of them.
.include "common.inc"
_start:
    mov eax, offset code
    jmp eax
.data
code:                         # would go to bad, if it ran
    .byte 0x68               # push offset bad
    .long bad
    .byte 0xc3               # ret
