// The first process of a container, for Linux on arm64. See amd64.s, which it
// follows line by line.

	.equ HOST, 3
	.equ ROOM, 65536

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
	cmp x0, #24
	b.lt fail
	mov x21, x0

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

	add x10, sp, #16		// prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, {length, filter})
	sub x9, x21, #16
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

	mov x8, #220			// clone(SIGCHLD, 0, 0, 0, 0)
	mov x0, #17
	mov x1, #0
	mov x2, #0
	mov x3, #0
	mov x4, #0
	svc #0
	tbnz x0, #63, fail
	cbnz x0, parent
	mov x8, #157			// setsid()
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
	svc #0
	mov w22, #0			// its status
	mov x23, #0			// how many were stopped
	mov w24, #0			// whether it has ended
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
