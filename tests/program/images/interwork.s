@ Calls between ARM and Thumb code, in both directions, and pointers to Thumb code.
    .syntax unified
    .text
    .arm
    .globl _start, arm_function, thumb_function, thumb_odd
    .type _start, %function
_start:
    bl thumb_function
    bl thumb_odd
    bl arm_function
    bleq arm_function
    movw r0, #:lower16:thumb_odd
    movt r0, #:upper16:thumb_odd
    bx lr
    .type arm_function, %function
arm_function:
    b arm_function
    bl nondet
    .thumb
    .thumb_func
    .type thumb_function, %function
thumb_function:
    bl arm_function
    nop
    .thumb_func
    .type thumb_odd, %function
thumb_odd:
    nop
    bl arm_function
    bl thumb_function
    b.w thumb_odd
    movw r0, #:lower16:thumb_function
    movt r0, #:upper16:thumb_function
    bl nondet
    bx lr
    .data
    .word thumb_odd, arm_function, thumb_odd - .
