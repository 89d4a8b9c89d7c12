	.file	"memname.c"
	.text
	.globl	set_name                        # -- Begin function set_name
	.p2align	2
	.type	set_name,@function
set_name:                               # @set_name
.Lfunc_begin0:
# %bb.0:
	mflr 0
	stwu 1, -32(1)
	stw 31, 28(1)
	stw 0, 36(1)
	mr	31, 1
	stw 3, 24(31)
	stw 4, 20(31)
	stw 5, 16(31)
	bl spin_lock
	lwz 3, 24(31)
	cmplwi	3, 0
	bne	0, .LBB0_2
	b .LBB0_1
.LBB0_1:
	bl spin_unlock
	lwz 4, 16(31)
	li 3, 116
	stb 3, 0(4)
	b .LBB0_2
.LBB0_2:
	lwz 3, 20(31)
	cmplwi	3, 0
	bne	0, .LBB0_4
	b .LBB0_3
.LBB0_3:
	bl spin_unlock
	lwz 4, 16(31)
	li 3, 15
	stb 3, 0(4)
	b .LBB0_9
.LBB0_4:
	bl choice
	stb 3, 15(31)
	lbz 3, 15(31)
	cmpwi	3, 32
	blt	0, .LBB0_6
	b .LBB0_5
.LBB0_5:
	bl spin_unlock
	lwz 4, 16(31)
	li 3, 119
	stb 3, 0(4)
	b .LBB0_9
.LBB0_6:
	lwz 3, 24(31)
	cmplwi	3, 0
	beq	0, .LBB0_8
	b .LBB0_7
.LBB0_7:
	lwz 3, 24(31)
	lbz 4, 15(31)
	add 4, 3, 4
	li 3, 0
	stb 3, 20(4)
	b .LBB0_8
.LBB0_8:
	bl spin_unlock
	lwz 4, 16(31)
	li 3, 0
	stb 3, 0(4)
	b .LBB0_9
.LBB0_9:
	lwz 0, 36(1)
	lwz 31, 28(1)
	addi 1, 1, 32
	mtlr 0
	blr
.Lfunc_end0:
	.size	set_name, .Lfunc_end0-.Lfunc_begin0
                                        # -- End function
	.weak	spin_lock                       # -- Begin function spin_lock
	.p2align	2
	.type	spin_lock,@function
spin_lock:                              # @spin_lock
.Lfunc_begin1:
# %bb.0:
	mflr 0
	stwu 1, -16(1)
	stw 31, 12(1)
	stw 0, 20(1)
	mr	31, 1
	lis 3, held@ha
	lwz 3, held@l(3)
	cmplwi	3, 0
	beq	0, .LBB1_2
	b .LBB1_1
.LBB1_1:
	bl reached
	b .LBB1_2
.LBB1_2:
	lis 4, held@ha
	li 3, 1
	stw 3, held@l(4)
	lwz 0, 20(1)
	lwz 31, 12(1)
	addi 1, 1, 16
	mtlr 0
	blr
.Lfunc_end1:
	.size	spin_lock, .Lfunc_end1-.Lfunc_begin1
                                        # -- End function
	.weak	spin_unlock                     # -- Begin function spin_unlock
	.p2align	2
	.type	spin_unlock,@function
spin_unlock:                            # @spin_unlock
.Lfunc_begin2:
# %bb.0:
	mflr 0
	stwu 1, -16(1)
	stw 31, 12(1)
	stw 0, 20(1)
	mr	31, 1
	lis 3, held@ha
	lwz 3, held@l(3)
	cmplwi	3, 0
	bne	0, .LBB2_2
	b .LBB2_1
.LBB2_1:
	bl reached
	b .LBB2_2
.LBB2_2:
	lis 4, held@ha
	li 3, 0
	stw 3, held@l(4)
	lwz 0, 20(1)
	lwz 31, 12(1)
	addi 1, 1, 16
	mtlr 0
	blr
.Lfunc_end2:
	.size	spin_unlock, .Lfunc_end2-.Lfunc_begin2
                                        # -- End function
	.weak	choice                          # -- Begin function choice
	.p2align	2
	.type	choice,@function
choice:                                 # @choice
.Lfunc_begin3:
# %bb.0:
	stwu 1, -16(1)
	stw 31, 12(1)
	mr	31, 1
	li 3, 0
	lwz 31, 12(1)
	addi 1, 1, 16
	blr
.Lfunc_end3:
	.size	choice, .Lfunc_end3-.Lfunc_begin3
                                        # -- End function
	.globl	program                         # -- Begin function program
	.p2align	2
	.type	program,@function
program:                                # @program
.Lfunc_begin4:
# %bb.0:
	mflr 0
	stwu 1, -32(1)
	stw 31, 28(1)
	stw 0, 36(1)
	mr	31, 1
	li 3, 0
	stw 3, 16(31)                           # 4-byte Folded Spill
	stb 3, 27(31)
	bl choice
	mr	4, 3
	lis 3, partitions@ha
	la 3, partitions@l(3)
	addi 3, 3, 52
	cmplwi	4, 0
	stw 3, 20(31)                           # 4-byte Folded Spill
	bne	0, .LBB4_2
# %bb.1:
	lwz 3, 16(31)                           # 4-byte Folded Reload
	stw 3, 20(31)                           # 4-byte Folded Spill
.LBB4_2:
	lwz 3, 20(31)                           # 4-byte Folded Reload
	stw 3, 8(31)                            # 4-byte Folded Spill
	bl choice
	mr	4, 3
	lis 3, .L.str@ha
	la 3, .L.str@l(3)
	cmplwi	4, 0
	stw 3, 12(31)                           # 4-byte Folded Spill
	bne	0, .LBB4_4
# %bb.3:
	lwz 3, 16(31)                           # 4-byte Folded Reload
	stw 3, 12(31)                           # 4-byte Folded Spill
.LBB4_4:
	lwz 3, 8(31)                            # 4-byte Folded Reload
	lwz 4, 12(31)                           # 4-byte Folded Reload
	addi 5, 31, 27
	bl set_name
	lwz 0, 36(1)
	lwz 31, 28(1)
	addi 1, 1, 32
	mtlr 0
	blr
.Lfunc_end4:
	.size	program, .Lfunc_end4-.Lfunc_begin4
                                        # -- End function
	.weak	reached                         # -- Begin function reached
	.p2align	2
	.type	reached,@function
reached:                                # @reached
.Lfunc_begin5:
# %bb.0:
	stwu 1, -16(1)
	stw 31, 12(1)
	mr	31, 1
	lwz 31, 12(1)
	addi 1, 1, 16
	blr
.Lfunc_end5:
	.size	reached, .Lfunc_end5-.Lfunc_begin5
                                        # -- End function
	.weak	halt                            # -- Begin function halt
	.p2align	2
	.type	halt,@function
halt:                                   # @halt
.Lfunc_begin6:
# %bb.0:
	stwu 1, -16(1)
	stw 31, 12(1)
	mr	31, 1
	b .LBB6_1
.LBB6_1:                                # =>This Inner Loop Header: Depth=1
	#APP
	#NO_APP
	b .LBB6_1
.Lfunc_end6:
	.size	halt, .Lfunc_end6-.Lfunc_begin6
                                        # -- End function
	.weak	spin_lock_irq                   # -- Begin function spin_lock_irq
	.p2align	2
	.type	spin_lock_irq,@function
spin_lock_irq:                          # @spin_lock_irq
.Lfunc_begin7:
# %bb.0:
	mflr 0
	stwu 1, -16(1)
	stw 31, 12(1)
	stw 0, 20(1)
	mr	31, 1
	lis 4, interrupts@ha
	li 3, 0
	stw 3, interrupts@l(4)
	bl spin_lock
	lwz 0, 20(1)
	lwz 31, 12(1)
	addi 1, 1, 16
	mtlr 0
	blr
.Lfunc_end7:
	.size	spin_lock_irq, .Lfunc_end7-.Lfunc_begin7
                                        # -- End function
	.weak	spin_unlock_irq                 # -- Begin function spin_unlock_irq
	.p2align	2
	.type	spin_unlock_irq,@function
spin_unlock_irq:                        # @spin_unlock_irq
.Lfunc_begin8:
# %bb.0:
	mflr 0
	stwu 1, -16(1)
	stw 31, 12(1)
	stw 0, 20(1)
	mr	31, 1
	bl spin_unlock
	lis 4, interrupts@ha
	li 3, 1
	stw 3, interrupts@l(4)
	lwz 0, 20(1)
	lwz 31, 12(1)
	addi 1, 1, 16
	mtlr 0
	blr
.Lfunc_end8:
	.size	spin_unlock_irq, .Lfunc_end8-.Lfunc_begin8
                                        # -- End function
	.weak	spin_lock_irqsave               # -- Begin function spin_lock_irqsave
	.p2align	2
	.type	spin_lock_irqsave,@function
spin_lock_irqsave:                      # @spin_lock_irqsave
.Lfunc_begin9:
# %bb.0:
	mflr 0
	stwu 1, -16(1)
	stw 31, 12(1)
	stw 0, 20(1)
	mr	31, 1
	lis 4, interrupts@ha
	lwz 3, interrupts@l(4)
	stw 3, 8(31)
	li 3, 0
	stw 3, interrupts@l(4)
	bl spin_lock
	lwz 3, 8(31)
	lwz 0, 20(1)
	lwz 31, 12(1)
	addi 1, 1, 16
	mtlr 0
	blr
.Lfunc_end9:
	.size	spin_lock_irqsave, .Lfunc_end9-.Lfunc_begin9
                                        # -- End function
	.weak	spin_unlock_irqrestore          # -- Begin function spin_unlock_irqrestore
	.p2align	2
	.type	spin_unlock_irqrestore,@function
spin_unlock_irqrestore:                 # @spin_unlock_irqrestore
.Lfunc_begin10:
# %bb.0:
	mflr 0
	stwu 1, -16(1)
	stw 31, 12(1)
	stw 0, 20(1)
	mr	31, 1
	stw 3, 8(31)
	bl spin_unlock
	lwz 3, 8(31)
	lis 4, interrupts@ha
	stw 3, interrupts@l(4)
	lwz 0, 20(1)
	lwz 31, 12(1)
	addi 1, 1, 16
	mtlr 0
	blr
.Lfunc_end10:
	.size	spin_unlock_irqrestore, .Lfunc_end10-.Lfunc_begin10
                                        # -- End function
	.globl	_start                          # -- Begin function _start
	.p2align	2
	.type	_start,@function
_start:                                 # @_start
.Lfunc_begin11:
# %bb.0:
	mflr 0
	stwu 1, -16(1)
	stw 31, 12(1)
	stw 0, 20(1)
	mr	31, 1
	bl program
	bl spin_lock
	bl spin_unlock
	bl halt
	lwz 0, 20(1)
	lwz 31, 12(1)
	addi 1, 1, 16
	mtlr 0
	blr
.Lfunc_end11:
	.size	_start, .Lfunc_end11-.Lfunc_begin11
                                        # -- End function
	.type	partitions,@object              # @partitions
	.lcomm	partitions,104,4
	.type	.L.str,@object                  # @.str
	.section	.rodata.str1.1,"aMS",@progbits,1
.L.str:
	.asciz	"pool"
	.size	.L.str, 5

	.type	interrupts,@object              # @interrupts
	.data
	.globl	interrupts
	.p2align	2, 0x0
interrupts:
	.long	1                               # 0x1
	.size	interrupts, 4

	.type	held,@object                    # @held
	.section	.bss,"aw",@nobits
	.globl	held
	.p2align	2, 0x0
held:
	.long	0                               # 0x0
	.size	held, 4

