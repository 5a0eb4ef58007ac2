//go:build !purego

#include "textflag.h"

// func addBlocks(b *byte, n int, s *sums)
TEXT ·addBlocks(SB), NOSPLIT, $0-24
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ s+16(FP), DI
	PXOR X0, X0
	PXOR X1, X1

block:
	MOVOU (SI), X2
	MOVOU 16(SI), X3
	ADDQ $32, SI
	PADDQ X2, X0
	PADDQ X0, X1
	PADDQ X3, X0
	PADDQ X0, X1
	DECQ CX
	JNE block
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	RET
