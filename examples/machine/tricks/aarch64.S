// AArch64: conditional select and compare, test-bit branches, 32-bit writes that clear the upper half, bit fields,
// a table of offsets and an indirect branch.
.globl _start, halt, bad, result
.text
_start:
    mov x0, #-1
    mov w0, w0                // 0xffffffff
    lsr x1, x0, #16           // 0xffff
    cbz x1, bad
    tbz w1, #15, bad
    tbnz x1, #16, bad
    mov w2, #5
    cmp w2, #5
    ccmp w1, w0, #0, eq       // compares 0xffff with 0xffffffff
    csinc w3, w2, w2, eq      // not equal: 6
    cmp w2, #4
    ccmp w2, w2, #4, ne       // equal
    csneg w4, w3, w2, eq      // 6
    ubfx w5, w1, #4, #8       // 0xff
    bfi w5, w2, #8, #4        // 0x5ff
    madd w6, w4, w3, w5       // 36 + 0x5ff = 0x623
    adrp x7, table
    add x7, x7, :lo12:table
    ldrsw x8, [x7, #4]
    add x7, x7, x8
    br x7
wrong:
    b bad
right:
    adrp x9, result
    str w6, [x9, :lo12:result]
halt:
    b halt
bad:
    b halt
.section .rodata
.balign 4
table: .word wrong - table, right - table
.bss
.balign 4
result: .skip 4
