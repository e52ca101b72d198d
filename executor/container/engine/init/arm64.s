// The first process of a container that an engine makes, for Linux on arm64. See
// amd64.s, which it follows line by line.

	.equ ROOM, 1 << 22
	.equ KEPT, 1 << 12

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

_start:	mov x8, #172			// getpid(): it stops all that it sees, and so must be the first
	svc #0
	cmp x0, #1
	b.ne quit

	mov x8, #222			// mmap(NULL, ROOM, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0)
	mov x0, #0
	mov x1, #ROOM
	mov x2, #3
	mov x3, #0x22
	mov x4, #-1
	mov x5, #0
	svc #0
	cmn x0, #4095
	b.hs quit
	mov x19, x0			// the room

message: mov x21, x19
	mov x22, #4
	bl fill
	ldr w22, [x19]
	mov w9, #ROOM - KEPT
	cmp w22, w9
	b.hi quit
	mov x21, x19
	bl fill
	mov x20, x19			// the record
record:	ldrb w9, [x20]
	cmp w9, #1
	b.lo message
	b.eq call
	cmp w9, #3
	b.lo fork
	b.eq tend
	ldp x21, x22, [x20, #24]	// add the address to words
	add x21, x21, x19
point:	subs x22, x22, #1
	b.lo next
	ldr x9, [x21, x22, lsl #3]
	cbz x9, point			// which is no address
	add x9, x9, x19
	str x9, [x21, x22, lsl #3]
	b point

call:	bl args
	ldr w8, [x20, #4]
	svc #0
	bl keep
	cmn x0, #4095
	b.lo next
	ldr w9, [x20, #16]
	cmp w9, #1
	b.lo next
	b.eq fail
	add x20, x19, x9
	b record
next:	add x20, x20, #72
	b record

fork:	mov x8, #220			// clone(SIGCHLD, 0, 0, 0, 0)
	mov x0, #17
	mov x1, #0
	mov x2, #0
	mov x3, #0
	mov x4, #0
	svc #0
	cbz x0, next
	bl keep
	ldr w9, [x20, #16]
	add x20, x19, x9
	b record

// Read so many bytes (x22) to the place (x21).
fill:	mov x8, #63			// read(0, place, bytes)
	mov x0, #0
	mov x1, x21
	mov x2, x22
	svc #0
	cmn x0, #4			// EINTR
	b.eq fill
	cmp x0, #0
	b.le quit			// the host has left
	add x21, x21, x0
	subs x22, x22, x0
	b.ne fill
	ret

// The arguments of a record, where a call has them.
args:	ldr w9, [x20, #8]
	mov x10, #5
	sub sp, sp, #48
1:	add x11, x20, x10, lsl #3
	ldr x12, [x11, #24]
	lsr w13, w9, w10
	tbz w13, #0, 2f
	add x12, x12, x19
2:	tbz w13, #8, 3f
	ldr x12, [x19, x12]
3:	str x12, [sp, x10, lsl #3]
	subs x10, x10, #1
	b.pl 1b
	ldp x0, x1, [sp]
	ldp x2, x3, [sp, #16]
	ldp x4, x5, [sp, #32]
	add sp, sp, #48
	ret

// The result (x0) goes where the record says.
keep:	ldr w9, [x20, #12]
	cbz w9, 1f
	str x0, [x19, x9]
1:	ret

// Tell the host which record failed and why, and end.
fail:	sub x20, x20, x19
	lsl x20, x20, #32
	mov x9, #'F'
	orr x9, x9, x20
	stp x9, x0, [sp, #-16]!
	mov x8, #64			// write(1, message, 16)
	mov x0, #1
	mov x1, sp
	mov x2, #16
	svc #0
	mov x0, #125
	b exit
quit:	mov x0, #126
exit:	mov x8, #94			// exit_group
	svc #0
	brk #0

// Reap what ends until the program (the first argument) has, or its time is over.
// Then stop the rest and reap it.
tend:	bl args
	mov x21, x0
	mov x22, x1
	mov x23, #0			// how many were stopped
	mov x24, #0			// 1: the program has ended; 2: its time is over
	sub sp, sp, #144		// the status, and from 16 what a signal says
	str wzr, [sp, #8]
wait:	mov x8, #260			// wait4(-1, status, __WALL, or __WALL|WNOHANG, NULL)
	mov x0, #-1
	mov x1, sp
	mov x2, #0x40000000
	mov x3, #0
	cbnz x24, 1f
	orr x2, x2, #1
1:	svc #0
	cmn x0, #4			// EINTR
	b.eq wait
	cmp x0, #0
	b.lt done
	b.eq sleep
	ldr w9, [sp]
	cbnz x24, late
	cmp x0, x21
	b.ne wait
	str w9, [sp, #8]
	mov x24, #1
stop:	mov x8, #129			// kill(-1, SIGKILL)
	mov x0, #-1
	mov x1, #9
	svc #0
	b wait
late:	and w9, w9, #0x7f
	cmp w9, #9
	b.ne wait
	add x23, x23, #1
	b wait
sleep:	mov x8, #137			// rt_sigtimedwait(set, info, NULL, 8)
	mov x0, x22
	add x1, sp, #16
	mov x2, #0
	mov x3, #8
	svc #0
	cmp x0, #14			// SIGALRM
	b.ne wait
	ldr w9, [sp, #24]
	cmp w9, #0x80			// and from the kernel (SI_KERNEL)
	b.ne wait
	mov x24, #2
	b stop
done:	ldr w9, [x20, #12]
	add x9, x19, x9
	ldr w10, [sp, #8]
	stp w10, w23, [x9]
	lsr x24, x24, #1
	str w24, [x9, #8]
	add sp, sp, #144
	b next
end:
