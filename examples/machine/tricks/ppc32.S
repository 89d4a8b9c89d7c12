# PowerPC: count-register loops, condition fields, conditional decrement branches, carry chains, rotate-and-mask, a
# jump table through ctr.
.globl _start, halt, bad, result
.text
_start:
    li 3, 0
    li 4, 10
    mtctr 4
again:                        # r3 = 10 + 9 + ... + 1
    mfctr 5
    add 3, 3, 5
    bdnz again
    cmpwi 1, 3, 55
    bne 1, bad
    li 4, 5
    mtctr 4
    li 6, 0
search:                       # leaves when r6 reaches 3, two counts left
    addi 6, 6, 1
    cmpwi 6, 3
    bdnzf 2, search
    bne bad
    mfctr 7
    add 3, 3, 7               # 57
    li 8, -1
    li 9, 1
    addc 10, 8, 9             # 0, carry
    addze 10, 10              # 1
    add 3, 3, 10              # 58
    rlwinm 11, 3, 4, 24, 27   # (58 << 4) & 0xf0 = 0xa0
    add 3, 3, 11              # 218
    lis 12, table@ha
    addi 12, 12, table@l
    lwz 0, 4(12)
    mtctr 0
    bctr
wrong:
    b bad
right:
    bl routine
    lis 12, result@ha
    stw 3, result@l(12)
halt:
    b halt
bad:
    b halt
routine:
    mulli 3, 3, 3             # 654
    blr
.section .rodata
.balign 4
table: .long wrong, right
.bss
.balign 4
result: .skip 4
