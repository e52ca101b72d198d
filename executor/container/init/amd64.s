# The first process of a container, for Linux on amd64. It has no libc and no data
# of its own. It hides itself, takes the limit of processes and the filter of
# system calls that the host sends, tells the host that it is there, and waits to
# be let go. Then it starts the program that its arguments name, reaps, and tells
# the host how that ended. See build.sh for how this becomes bytes.
#
# Where it relays, the program has pipes of the container's own kernel in place of the
# host's, and it copies what comes out of them: gVisor writes to a pipe of the host as
# much as has room there, which a program that did not ask for that takes for all.
#
# A message to it: the limit of processes twice, whether it relays (1 or 0; 8 bytes
# each), and the filter.
# Messages from it have 16 bytes: a letter and a number of 4 bytes each, and a
# value. R: it is there. F: a call failed, and the value says why. D: the program
# ended with that status; so many processes had to be stopped.

	.equ HOST, 3			# the socket to the host
	.equ ROOM, 65536
	.equ PIPES, 0			# from the stack's end: what is read from and written to, for each stream
	.equ POLL, 16			# the pipes and the file of the signal
	.equ MASK, 40
	.equ STATUS, 48

	.text
	.globl _start
ehdr:	.byte 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0
	.short 2, 62			# an executable, for x86-64
	.long 1
	.quad _start, phdr - ehdr, 0
	.long 0
	.short 64, 56, 2, 0, 0, 0
phdr:	.long 1, 5			# loaded, to be read and executed
	.quad 0, ehdr, ehdr, end - ehdr, end - ehdr, 0x1000
	.long 0x6474e551, 6		# the stack is not to be executed
	.quad 0, 0, 0, 0, 0, 16

_start:	lea 16(%rsp), %r12		# its arguments without the first
	mov (%rsp), %rax
	lea 16(%rsp,%rax,8), %r13	# its environment
	sub $ROOM, %rsp

	mov $157, %eax			# prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
	mov $4, %edi
	xor %esi, %esi
	xor %edx, %edx
	xor %r10d, %r10d
	xor %r8d, %r8d
	syscall
	test %rax, %rax
	jnz fail

	xor %eax, %eax			# read(HOST, buffer, ROOM)
	mov $HOST, %edi
	mov %rsp, %rsi
	mov $ROOM, %edx
	syscall
	cmp $32, %rax
	jl fail
	mov %rax, %r14
	mov 16(%rsp), %r15		# whether it relays

	mov $302, %eax			# prlimit64(0, RLIMIT_NPROC, buffer, NULL)
	xor %edi, %edi
	mov $6, %esi
	mov %rsp, %rdx
	xor %r10d, %r10d
	syscall
	test %rax, %rax
	jnz fail

	mov $72, %eax			# fcntl(HOST, F_SETFD, FD_CLOEXEC)
	mov $HOST, %edi
	mov $2, %esi
	mov $1, %edx
	syscall
	test %rax, %rax
	jnz fail

	mov $157, %eax			# prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	mov $38, %edi
	mov $1, %esi
	xor %edx, %edx
	xor %r10d, %r10d
	xor %r8d, %r8d
	syscall
	test %rax, %rax
	jnz fail

	lea 24(%rsp), %rax		# prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, {length, filter})
	push %rax
	lea -24(%r14), %rax
	shr $3, %rax
	push %rax
	mov $157, %eax
	mov $22, %edi
	mov $2, %esi
	mov %rsp, %rdx
	syscall
	test %rax, %rax
	jnz fail

	push $0				# say that it is there
	push $'R'
	mov $1, %eax			# write(HOST, message, 16)
	mov $HOST, %edi
	mov %rsp, %rsi
	mov $16, %edx
	syscall
	cmp $16, %rax
	jne quit
	xor %eax, %eax			# read(HOST, message, 1): the host lets it go, or has left
	mov $HOST, %edi
	mov %rsp, %rsi
	mov $1, %edx
	syscall
	cmp $1, %rax
	jne quit

	lea 32(%rsp), %rbp		# what was the message is of no more use: a buffer
	sub $64, %rsp			# PIPES, POLL, MASK and STATUS
	test %r15, %r15
	jz start
	mov $293, %eax			# pipe2(PIPES, O_CLOEXEC), for each stream
	lea PIPES(%rsp), %rdi
	mov $0x80000, %esi
	syscall
	test %rax, %rax
	jnz fail
	mov $293, %eax
	lea PIPES+8(%rsp), %rdi
	syscall
	test %rax, %rax
	jnz fail
	movq $0x10000, MASK(%rsp)	# SIGCHLD
	mov $289, %eax			# signalfd4(-1, MASK, 8, SFD_CLOEXEC | SFD_NONBLOCK)
	mov $-1, %edi
	lea MASK(%rsp), %rsi
	mov $8, %edx
	mov $0x80800, %r10d
	syscall
	test %rax, %rax
	js fail
	mov $1, %edx			# POLLIN
	mov %eax, POLL+16(%rsp)
	mov %edx, POLL+20(%rsp)
	mov PIPES(%rsp), %eax
	mov %eax, POLL(%rsp)
	mov %edx, POLL+4(%rsp)
	mov PIPES+8(%rsp), %eax
	mov %eax, POLL+8(%rsp)
	mov %edx, POLL+12(%rsp)

start:	mov $57, %eax			# fork()
	syscall
	test %rax, %rax
	js fail
	jnz parent
	test %r15, %r15
	jz 1f
	mov $33, %eax			# dup2(PIPES[1], 1)
	mov PIPES+4(%rsp), %edi
	mov $1, %esi
	syscall
	mov $33, %eax			# dup2(PIPES[3], 2)
	mov PIPES+12(%rsp), %edi
	mov $2, %esi
	syscall
1:	mov $112, %eax			# setsid()
	syscall
	mov $59, %eax			# execve(program, arguments, environment)
	mov (%r12), %rdi
	mov %r12, %rsi
	mov %r13, %rdx
	syscall

fail:	push %rax			# tell the host the result, and end
	push $'F'
	mov $125, %r12d
tell:	mov $1, %eax			# write(HOST, message, 16)
	mov $HOST, %edi
	mov %rsp, %rsi
	mov $16, %edx
	syscall
	mov %r12d, %edi
	jmp exit
quit:	mov $126, %edi
exit:	mov $231, %eax			# exit_group
	syscall
	hlt

# Reap what ends until the program has, then stop the rest, reap it, and tell the
# host the status and how many had to be stopped.
parent:	mov %rax, %r12			# the program's process
	mov $436, %eax			# close_range(0, 2, 0): the streams are the program's
	xor %edi, %edi
	mov $2, %esi
	xor %edx, %edx
	test %r15, %r15
	jz 1f
	xor %esi, %esi			# or the first of them alone
1:	syscall
	test %r15, %r15
	jz 1f
	mov $3, %eax			# close(PIPES[1])
	mov PIPES+4(%rsp), %edi
	syscall
	mov $3, %eax			# close(PIPES[3])
	mov PIPES+12(%rsp), %edi
	syscall
	mov $14, %eax			# rt_sigprocmask(SIG_BLOCK, MASK, NULL, 8)
	xor %edi, %edi
	lea MASK(%rsp), %rsi
	mov $8, %r10d
	syscall
1:	xor %r13d, %r13d		# its status
	xor %r14d, %r14d		# how many were stopped
	xor %ebx, %ebx			# whether it has ended
wait:	mov $61, %eax			# wait4(-1, STATUS, __WALL and, to relay, WNOHANG, NULL)
	mov $-1, %rdi
	lea STATUS(%rsp), %rsi
	mov $0x40000000, %edx
	or %r15d, %edx
	xor %r10d, %r10d
	syscall
	cmp $-4, %rax			# EINTR
	je wait
	test %rax, %rax
	js done
	jz relay
	mov STATUS(%rsp), %ecx
	test %ebx, %ebx
	jnz late
	cmp %r12, %rax
	jne wait
	mov %ecx, %r13d
	inc %ebx
	mov $62, %eax			# kill(-1, SIGKILL)
	mov $-1, %rdi
	mov $9, %esi
	syscall
	jmp wait
late:	and $0x7f, %ecx
	cmp $9, %ecx
	jne wait
	inc %r14d
	jmp wait

relay:	mov $271, %eax			# ppoll(POLL, 3, NULL, NULL, 0)
	lea POLL(%rsp), %rdi
	mov $3, %esi
	xor %edx, %edx
	xor %r10d, %r10d
	xor %r8d, %r8d
	syscall
	test %rax, %rax
	jle wait
	cmpw $0, POLL+22(%rsp)
	je 1f
	xor %eax, %eax			# read(the signal's, buffer, ROOM)
	mov POLL+16(%rsp), %edi
	mov %rbp, %rsi
	mov $ROOM, %edx
	syscall
1:	lea POLL(%rsp), %r9
	mov $1, %r10d
1:	cmpw $0, 6(%r9)
	je 2f
	call copy
2:	add $8, %r9
	inc %r10d
	cmp $2, %r10d
	je 1b
	jmp wait

# Copies once from the pipe of POLL at r9, if it has not ended, to r10d.
copy:	xor %eax, %eax			# read(pipe, buffer, ROOM)
	mov (%r9), %edi
	mov %rbp, %rsi
	mov $ROOM, %edx
	syscall
	test %rax, %rax
	jg 1f
	cmp $-4, %rax			# EINTR
	je 3f
	movl $-1, (%r9)
	ret
1:	mov %rax, %r8
2:	mov $1, %eax			# write(stream, buffer, what is left)
	mov %r10d, %edi
	mov %r8, %rdx
	syscall
	cmp $-4, %rax			# EINTR
	je 2b
	test %rax, %rax
	jle 3f
	add %rax, %rsi
	sub %rax, %r8
	jnz 2b
3:	ret

done:	test %r15, %r15
	jz 2f
	lea POLL(%rsp), %r9		# nobody can write any more: to the end of each pipe
	mov $1, %r10d
1:	cmpl $-1, (%r9)
	je 3f
	call copy
	jmp 1b
3:	add $8, %r9
	inc %r10d
	cmp $2, %r10d
	je 1b
2:	push %r13
	shl $32, %r14
	or $'D', %r14
	push %r14
	xor %r12d, %r12d
	jmp tell
end:
