#include "textflag.h"

// The kernel calls this with R0 = signal number, R1 = *siginfo_t, R2 = *ucontext
// and R30 = the vDSO's way back (rt_sigreturn), so no restorer of our own is
// needed. write(2) is async-signal-safe; all registers come back from the
// signal frame.
TEXT ·siginfoHandler(SB),NOSPLIT|NOFRAME,$0
	MOVW	·siginfoPipe(SB), R0
	MOVD	$32, R2
	MOVD	$64, R8 // write
	SVC
	RET

TEXT ·siginfoEntry(SB),NOSPLIT,$0-16
	MOVD	$·siginfoHandler(SB), R3
	MOVD	R3, handler+0(FP)
	MOVD	ZR, restorer+8(FP)
	RET
