# RISC-V with compressed instructions: four-byte instructions need only two-byte alignment, so a jump may enter the
# middle of one.
.globl _start, halt, bad, result
.text
_start:
    li a0, 10
    la t1, wide
    addi t1, t1, 2
    jr t1
    .balign 4
wide:
    .word 0x05150537          # lui a0, 0x5150; its upper half 0x0515 is c.addi a0, 5
    li t1, 15
    bne a0, t1, bad
    la t2, result
    sw a0, 0(t2)
halt:
    j halt
bad:
    j halt
.bss
.balign 4
result: .skip 4
