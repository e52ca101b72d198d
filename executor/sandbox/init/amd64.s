# The first process of a box, for Linux on amd64. It has no libc, no stack frame
# and no data of its own: it maps the program that the host prepared (descriptor
# 4) at a fixed address and makes its system calls one after the other. See
# program.go for the form of a step, and build.sh for how this becomes bytes.
#
# rbx: the step at hand. ebp: its flags.

	.equ BASE, 0x20000000		# where the program is mapped
					# it begins with the address of its first step
	.equ SIZE, 80			# of a step
	.equ STATUS, 3			# the socket to the host
	.equ PROGRAM, 4

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

_start:	mov $8, %eax			# lseek(PROGRAM, 0, SEEK_END): its size
	mov $PROGRAM, %edi
	xor %esi, %esi
	mov $2, %edx
	syscall
	mov %rax, %rsi
	mov $9, %eax			# mmap(BASE, size, read and write, private and fixed, PROGRAM, 0)
	mov $BASE, %edi
	mov $3, %edx
	mov $0x12, %r10d
	mov $PROGRAM, %r8d
	xor %r9d, %r9d
	syscall
	cmp $BASE, %rax
	jne quit
	mov BASE, %rbx

step:	mov (%rbx), %eax
	mov 4(%rbx), %ebp
	mov 8(%rbx), %rdi
	mov 16(%rbx), %rsi
	mov 24(%rbx), %rdx
	mov 32(%rbx), %r10
	mov 40(%rbx), %r8
	mov 48(%rbx), %r9
	test $0x01, %ebp		# arguments that are read from where an earlier step stored them
	jz 1f
	movslq (%rdi), %rdi
1:	test $0x02, %ebp
	jz 1f
	movslq (%rsi), %rsi
1:	test $0x04, %ebp
	jz 1f
	movslq (%rdx), %rdx
1:	test $0x08, %ebp
	jz 1f
	movslq (%r10), %r10
1:	test $0x10, %ebp
	jz 1f
	movslq (%r8), %r8
1:	cmp $-1, %eax
	je reap
	syscall
	mov 56(%rbx), %rcx		# where to store the result
	test %rcx, %rcx
	jz 1f
	mov %eax, (%rcx)
1:	test $0x100, %ebp		# whatever it is
	jnz next
	test $0x200, %ebp		# it must be this
	jz 1f
	cmp 64(%rbx), %rax
	jne fail
	jmp next
1:	cmp $-4095, %rax
	jae fail
	test $0x400, %ebp		# where it is zero, go there
	jz next
	test %rax, %rax
	jnz next
	mov 64(%rbx), %rbx
	jmp step
next:	add $SIZE, %rbx
	jmp step

fail:	push %rax			# tell the host the step and the result, and end
	shl $32, %rbx
	or $'F', %rbx
	push %rbx
	mov $125, %r12d
tell:	mov $1, %eax			# write(STATUS, message, 16)
	mov $STATUS, %edi
	mov %rsp, %rsi
	mov $16, %edx
	syscall
	mov %r12d, %edi
	jmp exit
quit:	mov $126, %edi
exit:	mov $231, %eax			# exit_group
	syscall
	hlt

# Reap what ends until the process rdi has, then stop the rest, reap it, and tell
# the host the status and how many had to be stopped.
reap:	mov %rdi, %r12			# the script's process
	xor %r13d, %r13d		# its status
	xor %r14d, %r14d		# how many were stopped
	xor %r15d, %r15d		# whether it has ended
	sub $16, %rsp
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
