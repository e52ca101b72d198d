# The first process of a container, for Linux on amd64. It has no libc and no data
# of its own. It hides itself, takes the limit of processes and the filter of
# system calls that the host sends, tells the host that it is there, and waits to
# be let go. Then it starts the program that its arguments name, reaps, and tells
# the host how that ended. See build.sh for how this becomes bytes.
#
# A message to it: the limit of processes twice (8 bytes each), and the filter.
# Messages from it have 16 bytes: a letter and a number of 4 bytes each, and a
# value. R: it is there. F: a call failed, and the value says why. D: the program
# ended with that status; so many processes had to be stopped.

	.equ HOST, 3			# the socket to the host
	.equ ROOM, 65536

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
	cmp $24, %rax
	jl fail
	mov %rax, %r14

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

	lea 16(%rsp), %rax		# prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, {length, filter})
	push %rax
	lea -16(%r14), %rax
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

	mov $57, %eax			# fork()
	syscall
	test %rax, %rax
	js fail
	jnz parent
	mov $112, %eax			# setsid()
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
	syscall
	xor %r13d, %r13d		# its status
	xor %r14d, %r14d		# how many were stopped
	xor %r15d, %r15d		# whether it has ended
wait:	mov $61, %eax			# wait4(-1, status, __WALL, NULL)
	mov $-1, %rdi
	mov %rsp, %rsi
	mov $0x40000000, %edx
	xor %r10d, %r10d
	syscall
	cmp $-4, %rax			# EINTR
	je wait
	test %rax, %rax
	js done
	mov (%rsp), %ecx
	test %r15d, %r15d
	jnz late
	cmp %r12, %rax
	jne wait
	mov %ecx, %r13d
	inc %r15d
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
done:	push %r13
	shl $32, %r14
	or $'D', %r14
	push %r14
	xor %r12d, %r12d
	jmp tell
end:
