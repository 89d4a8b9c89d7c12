@ ARM calls Thumb with blx, Thumb returns with bx and calls ARM in turn; IT blocks; conditional ARM instructions;
@ a load into pc that changes state.
.syntax unified
.globl _start, halt, bad, result
.text
.arm
.type _start, %function
_start:
    mov r0, #7
    blx thumb_part            @ immediate form changes state
    cmp r0, #30
    addeq r0, r0, #1          @ 31
    addne r0, r0, #100
    ldr r3, =thumb_second
    blx r3                    @ 62
    ldr r4, =table
    ldr pc, [r4, #4]          @ the address is odd: continues in Thumb
    b bad
back:
    ldr r1, =result
    str r0, [r1]
.type halt, %function
halt:
    b halt
.type bad, %function
bad:
    b halt
.type arm_part, %function
arm_part:
    rsb r0, r0, r0, lsl #1
    mov r0, r0, lsl #1
    bx lr
.ltorg
.thumb
.type thumb_part, %function
thumb_part:
    push {lr}
    cmp r0, #7
    ite eq
    addeq r0, #8              @ 15
    movne r0, #0
    blx arm_part              @ 30
    cmp r0, #29
    ittee gt
    movgt r1, #1
    addgt r0, #1
    movle r1, #2
    addle r0, #2
    subs r0, r0, r1           @ 30
    pop {pc}
.type thumb_second, %function
thumb_second:
    lsls r0, r0, #1
    bx lr
.type thumb_third, %function
thumb_third:
    adds r0, #2               @ 64
    ldr r4, =back
    bx r4
.ltorg
.section .rodata
.balign 4
table: .word bad, thumb_third
.bss
.balign 4
result: .skip 4
