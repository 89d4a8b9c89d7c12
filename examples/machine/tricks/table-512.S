# A computed jump into 512 targets of eight bytes each, selected by nine input bits. Target 317 is the bad one.
.include "common.inc"
_start:
    call input
    and eax, 511
    lea eax, [targets + eax * 8]
    jmp eax
    .balign 8, 0x90
targets:
    .rept 317
    jmp halt
    .balign 8, 0x90
    .endr
    jmp bad
    .balign 8, 0x90
    .rept 194
    jmp halt
    .balign 8, 0x90
    .endr
