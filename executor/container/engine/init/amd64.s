# The first process of a container that an engine makes, for Linux on amd64. It has no
# libc and knows nothing of runs: it makes the system calls that the host asks for on
# its standard input, and tends the program that one of them starts. See build.sh for
# how this becomes bytes, and talk.go for who writes what it reads.
#
# A message has its size (4 bytes), and then records of 72 bytes, and what they point
# to. It is read into the same room each time; what lies behind it there stays. A
# record: what it is (1 byte, of 4), the system call's number (4), of which arguments
# the room's address is to be added to (4: bits 0 to 5) and which are to be read from
# the room (bits 8 to 13), where in the room the result goes (4; zero: nowhere), where
# to go on when the call failed (4; zero: with the next, one: nowhere), 4 bytes of
# nothing, and six arguments.
#
# What a record is: 0 the end of a message; 1 a system call; 2 a fork: the child goes
# on with the next, the parent where one goes on whose call failed; 3 to tend; 4 to add
# the room's address to words: the first argument is where, the second how many.

	.equ ROOM, 1 << 22
	.equ KEPT, 1 << 12		# of it, at the end, no message comes to

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

_start:	mov $39, %eax			# getpid(): it stops all that it sees, and so must be the first
	syscall
	cmp $1, %eax
	jne quit

	mov $9, %eax			# mmap(NULL, ROOM, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0)
	xor %edi, %edi
	mov $ROOM, %esi
	mov $3, %edx
	mov $0x22, %r10d
	mov $-1, %r8
	xor %r9d, %r9d
	syscall
	cmp $-4095, %rax
	jae quit
	mov %rax, %rbx			# the room

message: mov %rbx, %rsi
	mov $4, %edx
	call fill
	mov (%rbx), %edx
	cmp $ROOM - KEPT, %edx
	ja quit
	mov %rbx, %rsi
	call fill
	mov %rbx, %rbp			# the record
record:	movzbl (%rbp), %eax
	cmp $1, %eax
	jb message
	je call
	cmp $3, %eax
	jb fork
	je tend
	mov 24(%rbp), %rsi		# add the address to words
	mov 32(%rbp), %rcx
	add %rbx, %rsi
point:	sub $1, %rcx
	jb next
	cmpq $0, (%rsi,%rcx,8)		# which is no address
	je point
	add %rbx, (%rsi,%rcx,8)
	jmp point

call:	call args
	mov 4(%rbp), %eax
	syscall
	call keep
	cmp $-4095, %rax
	jb next
	mov 16(%rbp), %ecx
	cmp $1, %ecx
	jb next
	je fail
	lea (%rbx,%rcx), %rbp
	jmp record
next:	add $72, %rbp
	jmp record

fork:	mov $57, %eax			# fork()
	syscall
	test %rax, %rax
	jz next
	call keep
	mov 16(%rbp), %ecx
	lea (%rbx,%rcx), %rbp
	jmp record

# Read so many bytes (rdx) to the place (rsi).
fill:	xor %eax, %eax			# read(0, place, bytes)
	xor %edi, %edi
	syscall
	cmp $-4, %rax			# EINTR
	je fill
	test %rax, %rax
	jle quit			# the host has left
	add %rax, %rsi
	sub %rax, %rdx
	jnz fill
	ret

# The arguments of a record, where a call has them.
args:	mov 8(%rbp), %r8d
	mov $5, %ecx
1:	mov 24(%rbp,%rcx,8), %rax
	bt %ecx, %r8d
	jnc 2f
	add %rbx, %rax
2:	lea 8(%rcx), %edx
	bt %edx, %r8d
	jnc 3f
	mov (%rbx,%rax), %rax
3:	mov %rax, -64(%rsp,%rcx,8)
	sub $1, %ecx
	jns 1b
	mov -64(%rsp), %rdi
	mov -56(%rsp), %rsi
	mov -48(%rsp), %rdx
	mov -40(%rsp), %r10
	mov -32(%rsp), %r8
	mov -24(%rsp), %r9
	ret

# The result (rax) goes where the record says.
keep:	mov 12(%rbp), %ecx
	test %ecx, %ecx
	jz 1f
	mov %rax, (%rbx,%rcx)
1:	ret

# Tell the host which record failed and why, and end.
fail:	push %rax
	sub %ebx, %ebp
	shl $32, %rbp
	or $'F', %rbp
	push %rbp
	mov $1, %eax			# write(1, message, 16)
	mov $1, %edi
	mov %rsp, %rsi
	mov $16, %edx
	syscall
	mov $125, %edi
	jmp exit
quit:	mov $126, %edi
exit:	mov $231, %eax			# exit_group
	syscall
	hlt

# Reap what ends until the program (the first argument) has, or its time is over.
# Then stop the rest and reap it. The signals that tell of both (the set is the second
# argument) are blocked. The status of the program, how many had to be stopped, and
# whether time was over are the result, of 4 bytes each.
tend:	call args
	mov %rdi, %r12
	mov %rsi, %r13
	xor %r14d, %r14d		# how many were stopped
	xor %r15d, %r15d		# 1: the program has ended; 2: its time is over
	sub $144, %rsp			# the status, and from 16 what a signal says
	movl $0, 8(%rsp)
wait:	mov $61, %eax			# wait4(-1, status, __WALL, or __WALL|WNOHANG, NULL)
	mov $-1, %rdi
	mov %rsp, %rsi
	mov $0x40000000, %edx
	xor %r10d, %r10d
	test %r15d, %r15d
	jnz 1f
	inc %edx
1:	syscall
	cmp $-4, %rax			# EINTR
	je wait
	test %rax, %rax
	js done
	jz sleep
	mov (%rsp), %ecx
	test %r15d, %r15d
	jnz late
	cmp %r12, %rax
	jne wait
	mov %ecx, 8(%rsp)
	mov $1, %r15d
stop:	mov $62, %eax			# kill(-1, SIGKILL)
	mov $-1, %rdi
	mov $9, %esi
	syscall
	jmp wait
late:	and $0x7f, %ecx
	cmp $9, %ecx
	jne wait
	inc %r14d
	jmp wait
sleep:	mov $128, %eax			# rt_sigtimedwait(set, info, NULL, 8)
	mov %r13, %rdi
	lea 16(%rsp), %rsi
	xor %edx, %edx
	mov $8, %r10d
	syscall
	cmp $14, %rax			# SIGALRM
	jne wait
	cmpl $0x80, 24(%rsp)		# and from the kernel (SI_KERNEL)
	jne wait
	mov $2, %r15d
	jmp stop
done:	mov 12(%rbp), %ecx
	mov 8(%rsp), %eax
	mov %eax, (%rbx,%rcx)
	mov %r14d, 4(%rbx,%rcx)
	shr $1, %r15d
	mov %r15d, 8(%rbx,%rcx)
	add $144, %rsp
	jmp next
end:
