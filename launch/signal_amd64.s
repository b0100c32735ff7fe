#include "textflag.h"

// The kernel calls this with DI = signal number, SI = *siginfo_t, DX = *ucontext.
// write(2) is async-signal-safe, and a system call leaves all registers alone
// but AX, CX and R11, which the kernel restores from the signal frame.
TEXT ·siginfoHandler(SB),NOSPLIT|NOFRAME,$0
	MOVL	·siginfoPipe(SB), DI
	MOVL	$32, DX
	MOVL	$1, AX // write
	SYSCALL
	RET

// x86-64 has no default way back from a handler: the kernel returns to this.
TEXT ·siginfoRestorer(SB),NOSPLIT|NOFRAME,$0
	MOVL	$15, AX // rt_sigreturn
	SYSCALL
	INT	$3

TEXT ·siginfoEntry(SB),NOSPLIT,$0-16
	LEAQ	·siginfoHandler(SB), AX
	MOVQ	AX, handler+0(FP)
	LEAQ	·siginfoRestorer(SB), AX
	MOVQ	AX, restorer+8(FP)
	RET
