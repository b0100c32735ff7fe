#include "textflag.h"

// zlexecEntry: see entry_amd64.s.
TEXT zlexecEntry(SB),NOSPLIT|NOFRAME,$0
	MOVD	RSP, R19 // argc, argv … for the runtime
	MOVD	R0, R22
	SUB	$64, RSP
	MOVD	ZR, R20 // the set of ignored signals
	MOVD	$1, R21
next:
	MOVD	R21, R0
	MOVD	ZR, R1
	MOVD	RSP, R2
	MOVD	$8, R3
	MOVD	$134, R8 // rt_sigaction(n, NULL, SP, 8)
	SVC
	CBNZ	R0, skip
	MOVD	0(RSP), R4
	CMP	$1, R4 // SIG_IGN
	BNE	skip
	SUB	$1, R21, R5
	MOVD	$1, R4
	LSL	R5, R4, R4
	ORR	R4, R20, R20
skip:
	ADD	$1, R21, R21
	CMP	$64, R21
	BLE	next
	MOVD	R20, ·inheritedIgnored(SB)
	MOVD	ZR, R0
	MOVD	ZR, R1
	MOVD	RSP, R2
	MOVD	$8, R3
	MOVD	$135, R8 // rt_sigprocmask(SIG_BLOCK, NULL, SP, 8)
	SVC
	MOVD	0(RSP), R4
	MOVD	R4, ·inheritedMask(SB)
	MOVD	$1, R4
	MOVW	R4, ·inheritedKnown(SB)
	MOVD	R22, R0
	MOVD	R19, RSP
	JMP	_rt0_arm64_linux(SB)
