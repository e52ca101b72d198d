// The first process of a container, for Linux on arm64. See amd64.s, which it
// follows line by line.

	.equ HOST, 3
	.equ ROOM, 65536
	.equ PIPES, 0
	.equ POLL, 16
	.equ MASK, 40
	.equ STATUS, 48

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

_start:	ldr x9, [sp]
	add x19, sp, #16		// its arguments without the first
	add x20, sp, x9, lsl #3
	add x20, x20, #16		// its environment
	sub sp, sp, #ROOM

	mov x8, #167			// prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
	mov x0, #4
	mov x1, #0
	mov x2, #0
	mov x3, #0
	mov x4, #0
	svc #0
	cbnz x0, fail

	mov x8, #63			// read(HOST, buffer, ROOM)
	mov x0, #HOST
	mov x1, sp
	mov x2, #ROOM
	svc #0
	cmp x0, #32
	b.lt fail
	mov x21, x0
	ldr x25, [sp, #16]		// whether it relays

	mov x8, #261			// prlimit64(0, RLIMIT_NPROC, buffer, NULL)
	mov x0, #0
	mov x1, #6
	mov x2, sp
	mov x3, #0
	svc #0
	cbnz x0, fail

	mov x8, #25			// fcntl(HOST, F_SETFD, FD_CLOEXEC)
	mov x0, #HOST
	mov x1, #2
	mov x2, #1
	svc #0
	cbnz x0, fail

	mov x8, #167			// prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	mov x0, #38
	mov x1, #1
	mov x2, #0
	mov x3, #0
	mov x4, #0
	svc #0
	cbnz x0, fail

	add x10, sp, #24		// prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, {length, filter})
	sub x9, x21, #24
	lsr x9, x9, #3
	stp x9, x10, [sp, #-16]!
	mov x8, #167
	mov x0, #22
	mov x1, #2
	mov x2, sp
	svc #0
	cbnz x0, fail

	mov x9, #'R'			// say that it is there
	stp x9, xzr, [sp, #-16]!
	mov x8, #64			// write(HOST, message, 16)
	mov x0, #HOST
	mov x1, sp
	mov x2, #16
	svc #0
	cmp x0, #16
	b.ne quit
	mov x8, #63			// read(HOST, message, 1): the host lets it go, or has left
	mov x0, #HOST
	mov x1, sp
	mov x2, #1
	svc #0
	cmp x0, #1
	b.ne quit

	add x26, sp, #32		// what was the message is of no more use: a buffer
	sub sp, sp, #64			// PIPES, POLL, MASK and STATUS
	cbz x25, start
	mov x8, #59			// pipe2(PIPES, O_CLOEXEC), for each stream
	add x0, sp, #PIPES
	mov x1, #0x80000
	svc #0
	cbnz x0, fail
	mov x8, #59
	add x0, sp, #PIPES+8
	mov x1, #0x80000
	svc #0
	cbnz x0, fail
	mov x9, #0x10000		// SIGCHLD
	str x9, [sp, #MASK]
	mov x8, #74			// signalfd4(-1, MASK, 8, SFD_CLOEXEC | SFD_NONBLOCK)
	mov x0, #-1
	add x1, sp, #MASK
	mov x2, #8
	mov x3, #0x800
	movk x3, #8, lsl #16
	svc #0
	tbnz x0, #63, fail
	mov w9, #1			// POLLIN
	stp w0, w9, [sp, #POLL+16]
	ldr w0, [sp, #PIPES]
	stp w0, w9, [sp, #POLL]
	ldr w0, [sp, #PIPES+8]
	stp w0, w9, [sp, #POLL+8]

start:	mov x8, #220			// clone(SIGCHLD, 0, 0, 0, 0)
	mov x0, #17
	mov x1, #0
	mov x2, #0
	mov x3, #0
	mov x4, #0
	svc #0
	tbnz x0, #63, fail
	cbnz x0, parent
	cbz x25, 1f
	mov x8, #24			// dup3(PIPES[1], 1, 0)
	ldr w0, [sp, #PIPES+4]
	mov x1, #1
	mov x2, #0
	svc #0
	mov x8, #24			// dup3(PIPES[3], 2, 0)
	ldr w0, [sp, #PIPES+12]
	mov x1, #2
	mov x2, #0
	svc #0
1:	mov x8, #157			// setsid()
	svc #0
	mov x8, #221			// execve(program, arguments, environment)
	ldr x0, [x19]
	mov x1, x19
	mov x2, x20
	svc #0

fail:	mov x9, #'F'			// tell the host the result, and end
	stp x9, x0, [sp, #-16]!
	mov x21, #125
tell:	mov x8, #64			// write(HOST, message, 16)
	mov x0, #HOST
	mov x1, sp
	mov x2, #16
	svc #0
	mov x0, x21
	b exit
quit:	mov x0, #126
exit:	mov x8, #94			// exit_group
	svc #0
	brk #0

// Reap what ends until the program has, then stop the rest, reap it, and tell the
// host the status and how many had to be stopped.
parent:	mov x21, x0			// the program's process
	mov x8, #436			// close_range(0, 2, 0): the streams are the program's
	mov x0, #0
	mov x1, #2
	mov x2, #0
	cbz x25, 1f
	mov x1, #0			// or the first of them alone
1:	svc #0
	cbz x25, 1f
	mov x8, #57			// close(PIPES[1])
	ldr w0, [sp, #PIPES+4]
	svc #0
	mov x8, #57			// close(PIPES[3])
	ldr w0, [sp, #PIPES+12]
	svc #0
	mov x8, #135			// rt_sigprocmask(SIG_BLOCK, MASK, NULL, 8)
	mov x0, #0
	add x1, sp, #MASK
	mov x2, #0
	mov x3, #8
	svc #0
1:	mov w22, #0			// its status
	mov x23, #0			// how many were stopped
	mov w24, #0			// whether it has ended
wait:	mov x8, #260			// wait4(-1, STATUS, __WALL and, to relay, WNOHANG, NULL)
	mov x0, #-1
	add x1, sp, #STATUS
	mov x2, #0x40000000
	orr x2, x2, x25
	mov x3, #0
	svc #0
	cmn x0, #4			// EINTR
	b.eq wait
	tbnz x0, #63, done
	cbz x0, relay
	ldr w9, [sp, #STATUS]
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

relay:	mov x8, #73			// ppoll(POLL, 3, NULL, NULL, 0)
	add x0, sp, #POLL
	mov x1, #3
	mov x2, #0
	mov x3, #0
	mov x4, #0
	svc #0
	cmp x0, #0
	b.le wait
	ldrh w9, [sp, #POLL+22]
	cbz w9, 1f
	mov x8, #63			// read(the signal's, buffer, ROOM)
	ldr w0, [sp, #POLL+16]
	mov x1, x26
	mov x2, #ROOM
	svc #0
1:	add x27, sp, #POLL
	mov x28, #1
1:	ldrh w9, [x27, #6]
	cbz w9, 2f
	bl copy
2:	add x27, x27, #8
	add x28, x28, #1
	cmp x28, #2
	b.eq 1b
	b wait

// Copies once from the pipe of POLL at x27, if it has not ended, to x28.
copy:	mov x8, #63			// read(pipe, buffer, ROOM)
	ldr w0, [x27]
	mov x1, x26
	mov x2, #ROOM
	svc #0
	cmp x0, #0
	b.gt 1f
	cmn x0, #4			// EINTR
	b.eq 3f
	mov w9, #-1
	str w9, [x27]
	ret
1:	mov x19, x0			// the arguments are of no more use
	mov x20, x26
2:	mov x8, #64			// write(stream, buffer, what is left)
	mov x0, x28
	mov x1, x20
	mov x2, x19
	svc #0
	cmn x0, #4			// EINTR
	b.eq 2b
	cmp x0, #0
	b.le 3f
	add x20, x20, x0
	subs x19, x19, x0
	b.ne 2b
3:	ret

done:	cbz x25, 2f
	add x27, sp, #POLL		// nobody can write any more: to the end of each pipe
	mov x28, #1
1:	ldr w9, [x27]
	cmn w9, #1
	b.eq 3f
	bl copy
	b 1b
3:	add x27, x27, #8
	add x28, x28, #1
	cmp x28, #2
	b.eq 1b
2:	lsl x23, x23, #32
	mov x9, #'D'
	orr x23, x23, x9
	mov w22, w22
	stp x23, x22, [sp, #-16]!
	mov x21, #0
	b tell
end:
