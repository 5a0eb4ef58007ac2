//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Multiples of the step of inference.PathID.
DATA steps<>+0(SB)/8, $0x9e3779b97f4a7c15
DATA steps<>+8(SB)/8, $0x3c6ef372fe94f82a
DATA steps<>+16(SB)/8, $0xdaa66d2c7ddf743f
DATA steps<>+24(SB)/8, $0x78dde6e5fd29f054
DATA steps<>+32(SB)/8, $0x1715609f7c746c69
DATA steps<>+40(SB)/8, $0xb54cda58fbbee87e
DATA steps<>+48(SB)/8, $0x538454127b096493
DATA steps<>+56(SB)/8, $0xf1bbcdcbfa53e0a8
GLOBL steps<>(SB), RODATA|NOPTR, $64

DATA evens<>+0(SB)/8, $0
DATA evens<>+8(SB)/8, $2
DATA evens<>+16(SB)/8, $4
DATA evens<>+24(SB)/8, $6
DATA evens<>+32(SB)/8, $8
DATA evens<>+40(SB)/8, $10
DATA evens<>+48(SB)/8, $12
DATA evens<>+56(SB)/8, $14
GLOBL evens<>(SB), RODATA|NOPTR, $64

DATA swap<>+0(SB)/8, $0x0001020304050607
DATA swap<>+8(SB)/8, $0x08090a0b0c0d0e0f
GLOBL swap<>(SB), RODATA|NOPTR, $16

DATA constants<>+0(SB)/8, $1
DATA constants<>+8(SB)/8, $0xe7037ed1a0b428db  // the multiplier of inference.PathID, of which the low half counts
DATA constants<>+16(SB)/8, $0xe7037ed1         // its high half
DATA constants<>+24(SB)/8, $0xffffffff
DATA constants<>+32(SB)/8, $0xffffff
DATA constants<>+40(SB)/8, $0x102000           // of a float64 and of codes: see quantile.EncodeBoth
DATA constants<>+48(SB)/8, $0x8060
DATA constants<>+56(SB)/8, $1024
DATA constants<>+64(SB)/8, $32
DATA constants<>+72(SB)/8, $(const_rowCodes-1)
DATA constants<>+80(SB)/8, $const_rowCounters
DATA constants<>+88(SB)/8, $const_rowCodes
GLOBL constants<>(SB), RODATA|NOPTR, $96

// func stackCodes(stack *byte, refs, codes *uint16, counters *uint32, n int, latencyNS, queueBytes, queueLimit, id uint64) bool
TEXT ·stackCodes(SB), NOSPLIT, $0-73
	MOVQ stack+0(FP), AX
	MOVQ n+32(FP), CX
	MOVB $0, ret+72(FP)
	MOVL $1, DX // K1 has a bit for each hop
	SHLL CX, DX
	DECL DX
	KMOVW DX, K1
	LEAQ -2(CX)(CX*1), BX // the oldest hop stands last, and goes to the first lane
	VPBROADCASTQ BX, Z0
	VPSUBQ evens<>(SB), Z0, Z0
	VPADDQ.BCST constants<>+0(SB), Z0, Z1
	VBROADCASTI32X4 swap<>(SB), Z4
	VMOVDQU64 (AX), Z2
	VMOVDQU64 64(AX), Z3
	VPSHUFB Z4, Z2, Z2
	VPSHUFB Z4, Z3, Z3
	VPERMI2Q Z3, Z2, Z0 // node and interfaces
	VPERMI2Q Z3, Z2, Z1 // latency, queue id, queue

	// The 128-bit products of inference.PathID, of products of 32 bits.
	VPXORQ steps<>(SB), Z0, Z0
	VPSRLQ $32, Z0, Z5
	VPMULUDQ.BCST constants<>+8(SB), Z0, Z6
	VPMULUDQ.BCST constants<>+16(SB), Z0, Z7
	VPMULUDQ.BCST constants<>+8(SB), Z5, Z8
	VPMULUDQ.BCST constants<>+16(SB), Z5, Z9
	VPSRLQ $32, Z6, Z10
	VPADDQ Z10, Z7, Z7
	VPSRLQ $32, Z7, Z10
	VPADDQ Z10, Z9, Z9
	VPANDQ.BCST constants<>+24(SB), Z7, Z7
	VPADDQ Z7, Z8, Z8
	VPSRLQ $32, Z8, Z10
	VPADDQ Z10, Z9, Z9
	VPSLLQ $32, Z8, Z8
	VPANDQ.BCST constants<>+24(SB), Z6, Z6
	VPORQ Z6, Z8, Z8
	VPXORQ.Z Z8, Z9, K1, Z9
	VEXTRACTI64X4 $1, Z9, Y10
	VPADDQ Y10, Y9, Y9
	VEXTRACTI128 $1, Y9, X10
	VPADDQ X10, X9, X9
	VPSHUFD $0x4e, X9, X10
	VPADDQ X10, X9, X9
	VMOVQ X9, DX
	ADDQ CX, DX
	CMPQ DX, $1
	ADCQ $0, DX // 0 is no id
	CMPQ DX, id+64(FP)
	JNE no

	// The codes of quantile.EncodeBoth: Z6 and Z7 of latencies, Z8 of queues.
	VPSRLQ $32, Z1, Z2
	VPANDQ.BCST constants<>+32(SB), Z1, Z3
	VPMULLQ.BCST latencyNS+40(FP), Z2, Z2
	VPMULLQ.BCST queueBytes+48(FP), Z3, Z3
	VCVTQQ2PD Z2, Z4
	VCVTQQ2PD Z3, Z5
	VPSRLQ $42, Z4, Z6
	VPSRLQ $47, Z4, Z7
	VPSRLQ $47, Z5, Z8
	VPSUBQ.BCST constants<>+40(SB), Z6, Z6
	VPSUBQ.BCST constants<>+48(SB), Z7, Z7
	VPSUBQ.BCST constants<>+48(SB), Z8, Z8
	VPCMPUQ.BCST $1, constants<>+56(SB), Z2, K2
	VPCMPUQ.BCST $1, constants<>+64(SB), Z2, K3
	VPCMPUQ.BCST $1, constants<>+64(SB), Z3, K4
	VMOVDQA64 Z2, K2, Z6
	VMOVDQA64 Z2, K3, Z7
	VMOVDQA64 Z3, K4, Z8

	MOVQ refs+8(FP), SI
	VPMOVZXWQ (SI), Z9
	VPCMPUQ.BCST $5, constants<>+72(SB), Z7, K1, K2 // not below
	VPCMPUQ.BCST $5, queueLimit+56(FP), Z8, K1, K3
	VPTESTNMQ Z9, Z9, K1, K4 // no place
	KORW K2, K3, K3
	KORW K3, K4, K4
	KMOVW K4, DX
	TESTL DX, DX
	JNE no

	VMOVDQA64.Z Z6, K1, Z6
	VPMOVQW Z6, X6
	MOVQ codes+16(FP), DI
	VMOVDQU X6, (DI)
	VPMULUDQ.BCST constants<>+80(SB), Z9, Z9
	VPADDQ Z7, Z9, Z7
	VPADDQ.BCST constants<>+88(SB), Z9, Z9
	VPADDQ Z8, Z9, Z8
	VPSLLQ $32, Z8, Z8
	VPORQ Z8, Z7, Z7
	MOVQ counters+24(FP), DI
	VMOVDQU64 Z7, (DI)
	MOVB $1, ret+72(FP)

no:
	VZEROUPPER
	RET

// func avx512() bool
TEXT ·avx512(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JLT  without
	MOVL $1, AX
	XORL CX, CX
	CPUID
	BTL  $27, CX // the system saves registers: OSXSAVE
	JCC  without
	XORL CX, CX
	XGETBV
	ANDL $0xe6, AX // those of 128, 256 and 512 bits, and masks
	CMPL AX, $0xe6
	JNE  without
	MOVL $7, AX
	XORL CX, CX
	CPUID
	ANDL $0xc0030000, BX // F, DQ, BW, VL
	CMPL BX, $0xc0030000
	JNE  without
	MOVB $1, ret+0(FP)

without:
	RET
