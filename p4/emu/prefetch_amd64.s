//go:build !purego

#include "textflag.h"

// func prefetchPacket(p *packet)
TEXT ·prefetchPacket(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	PREFETCHT0 128(AX)
	PREFETCHT0 192(AX)
	PREFETCHT0 256(AX)
	RET

// func prefetchRoute(next *int32)
TEXT ·prefetchRoute(SB), NOSPLIT, $0-8
	MOVQ next+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func prefetchFrame(frame *byte, hop *Hop)
TEXT ·prefetchFrame(SB), NOSPLIT, $0-16
	MOVQ frame+0(FP), AX
	MOVQ hop+8(FP), BX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	PREFETCHT0 128(AX)
	PREFETCHT0 (BX)
	PREFETCHT0 56(BX)
	RET

// func prefetchQueue(q *queue, d *device)
TEXT ·prefetchQueue(SB), NOSPLIT, $0-16
	MOVQ q+0(FP), AX
	MOVQ d+8(FP), BX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	PREFETCHT0 (BX)
	PREFETCHT0 64(BX)
	RET
