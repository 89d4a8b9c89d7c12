# PowerPC: the index of a store into a two-word array of the frame is an input of at most 10. The link register is
# saved seven words above the array's start, in the caller's frame.
.globl _start, halt, reached, choice
.text
choice:
    li 3, 0
    blr
reached:
    blr
halt:
    b halt
_start:
    stwu 1, -16(1)
    bl program
    b halt

program:
    mflr 0
    stwu 1, -16(1)
    stw 0, 20(1)
    bl foo
    lwz 0, 20(1)
    addi 1, 1, 16
    mtlr 0
    blr

bar:
    bl reached
    b halt

foo:
    mflr 0
    stwu 1, -32(1)
    stw 0, 36(1)
    bl choice
    cmplwi 3, 10
    bgt leave_foo
    slwi 3, 3, 2
    addi 4, 1, 8
    lis 5, bar@ha
    addi 5, 5, bar@l
    stwx 5, 4, 3
leave_foo:
    lwz 0, 36(1)
    addi 1, 1, 32
    mtlr 0
    blr
