# MIPS: the instruction after a branch or jump is executed before the target, also when it changes the register the
# branch tested; branch-likely annuls it when not taken.
.set noreorder
.set noat
.globl _start, halt, bad, result
.text
_start:
    li $2, 1
    beq $2, $0, bad           # not taken, tested before the slot runs
    li $2, 0
    bne $2, $0, bad           # not taken: the slot above did run
    addiu $3, $0, 10
    beql $3, $0, bad          # not taken: its slot is annulled
    li $3, 99
    jal routine
    addiu $4, $3, 5           # the argument is set in the slot: 15
    bltzal $0, bad            # not taken; still writes $31
    nop
    la $8, finish
    jr $8
    addiu $5, $5, 1           # 31
    b bad
    nop
finish:
    la $9, result
    sw $5, 0($9)
halt:
    b halt
    nop
bad:
    b halt
    nop
routine:
    jr $31
    sll $5, $4, 1             # 30
.bss
.balign 4
result: .skip 4
