// The first process of a box, for Linux on arm64. See amd64.s, which it follows
// line by line.
//
// x19: the step at hand. w20: its flags.

	.equ BASE, 0x20000000
	.equ SIZE, 80
	.equ STATUS, 3
	.equ PROGRAM, 4

	.text
	.globl _start
ehdr:	.byte 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0
	.short 2, 183			// an executable, for aarch64
	.long 1
	.quad _start, phdr - ehdr, 0
	.long 0
	.short 64, 56, 2, 0, 0, 0
phdr:	.long 1, 5			// loaded, to be read and executed
	.quad 0, ehdr, ehdr, end - ehdr, end - ehdr, 0x10000
	.long 0x6474e551, 6		// the stack is not to be executed
	.quad 0, 0, 0, 0, 0, 16

_start:	mov x8, #62			// lseek(PROGRAM, 0, SEEK_END): its size
	mov x0, #PROGRAM
	mov x1, #0
	mov x2, #2
	svc #0
	mov x1, x0
	mov x8, #222			// mmap(BASE, size, read and write, private and fixed, PROGRAM, 0)
	mov x0, #BASE
	mov x2, #3
	mov x3, #0x12
	mov x4, #PROGRAM
	mov x5, #0
	svc #0
	mov x1, #BASE
	cmp x0, x1
	b.ne quit
	ldr x19, [x1]

step:	ldp w8, w20, [x19]
	ldp x0, x1, [x19, #8]
	ldp x2, x3, [x19, #24]
	ldp x4, x5, [x19, #40]
	tbz w20, #0, 1f			// arguments that are read from where an earlier step stored them
	ldrsw x0, [x0]
1:	tbz w20, #1, 1f
	ldrsw x1, [x1]
1:	tbz w20, #2, 1f
	ldrsw x2, [x2]
1:	tbz w20, #3, 1f
	ldrsw x3, [x3]
1:	tbz w20, #4, 1f
	ldrsw x4, [x4]
1:	cmn w8, #1
	b.eq reap
	svc #0
	ldr x9, [x19, #56]		// where to store the result
	cbz x9, 1f
	str w0, [x9]
1:	tbnz w20, #8, next		// whatever it is
	ldr x9, [x19, #64]
	tbz w20, #9, 1f			// it must be this
	cmp x0, x9
	b.ne fail
	b next
1:	cmn x0, #4095
	b.hs fail
	tbz w20, #10, next		// where it is zero, go there
	cbnz x0, next
	mov x19, x9
	b step
next:	add x19, x19, #SIZE
	b step

fail:	lsl x19, x19, #32		// tell the host the step and the result, and end
	mov x9, #'F'
	orr x19, x19, x9
	stp x19, x0, [sp, #-16]!
	mov x21, #125
tell:	mov x8, #64			// write(STATUS, message, 16)
	mov x0, #STATUS
	mov x1, sp
	mov x2, #16
	svc #0
	mov x0, x21
	b exit
quit:	mov x0, #126
exit:	mov x8, #94			// exit_group
	svc #0
	brk #0

// Reap what ends until the process x0 has, then stop the rest, reap it, and tell
// the host the status and how many had to be stopped.
reap:	mov x21, x0			// the script's process
	mov w22, #0			// its status
	mov x23, #0			// how many were stopped
	mov w24, #0			// whether it has ended
	sub sp, sp, #16
wait:	mov x8, #260			// wait4(-1, status, __WALL, NULL)
	mov x0, #-1
	mov x1, sp
	mov x2, #0x40000000
	mov x3, #0
	svc #0
	cmn x0, #4			// EINTR
	b.eq wait
	tbnz x0, #63, done
	ldr w9, [sp]
	cbnz w24, late
	cmp x0, x21
	b.ne wait
	mov w22, w9
	mov w24, #1
	mov x8, #129			// kill(-1, SIGKILL)
	mov x0, #-1
	mov x1, #9
	svc #0
	b wait
late:	and w9, w9, #0x7f
	cmp w9, #9
	b.ne wait
	add x23, x23, #1
	b wait
done:	lsl x23, x23, #32
	mov x9, #'D'
	orr x23, x23, x9
	mov w22, w22
	stp x23, x22, [sp, #-16]!
	mov x21, #0
	b tell
end:
