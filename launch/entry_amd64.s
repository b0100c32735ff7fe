#include "textflag.h"

// zlexecEntry runs before the Go runtime, when the binary is linked with
// "-E zlexecEntry". The runtime installs its handlers over what the caller had
// ignored (TERM, QUIT, USR1, PIPE …) and unblocks what it had blocked, and a
// command started later inherits that loss. So the state is noted here, and
// put back around the start of the command (inherit.go). Without the linker
// flag only the ignored INT and HUP are kept, which the runtime leaves alone.
TEXT zlexecEntry(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, R12 // argc, argv … for the runtime
	MOVQ	DX, R13
	SUBQ	$64, SP
	XORQ	R14, R14 // the set of ignored signals
	MOVQ	$1, R15
next:
	MOVQ	R15, DI
	XORQ	SI, SI
	MOVQ	SP, DX
	MOVQ	$8, R10
	MOVL	$13, AX // rt_sigaction(n, NULL, SP, 8)
	SYSCALL
	CMPQ	AX, $0
	JNE	skip
	CMPQ	(SP), $1 // SIG_IGN
	JNE	skip
	MOVQ	R15, CX
	DECQ	CX
	MOVQ	$1, AX
	SHLQ	CX, AX
	ORQ	AX, R14
skip:
	INCQ	R15
	CMPQ	R15, $64
	JLE	next
	MOVQ	R14, ·inheritedIgnored(SB)
	XORQ	DI, DI
	XORQ	SI, SI
	MOVQ	SP, DX
	MOVQ	$8, R10
	MOVL	$14, AX // rt_sigprocmask(SIG_BLOCK, NULL, SP, 8)
	SYSCALL
	MOVQ	(SP), AX
	MOVQ	AX, ·inheritedMask(SB)
	MOVL	$1, ·inheritedKnown(SB)
	MOVQ	R13, DX
	MOVQ	R12, SP
	JMP	_rt0_amd64_linux(SB)
