//go:build !purego

#include "textflag.h"

DATA hopNumbers<>+0(SB)/8, $0x0000000200000001
DATA hopNumbers<>+8(SB)/8, $0x0000000400000003
DATA hopNumbers<>+16(SB)/8, $0x0000000600000005
DATA hopNumbers<>+24(SB)/8, $0x0000000800000007
GLOBL hopNumbers<>(SB), RODATA|NOPTR, $32

DATA constants<>+0(SB)/4, $0xed5ad4bb
DATA constants<>+4(SB)/4, $0xac4c1b51
DATA constants<>+8(SB)/4, $0x31848bab
DATA constants<>+12(SB)/4, $8
GLOBL constants<>(SB), RODATA|NOPTR, $16

// MIX hashes eight numbers in Y6, to which the first key was added. Y2 holds the second key, Y3 to Y5 the
// multipliers; Y7 is overwritten.
#define MIX \
	VPSRLD  $17, Y6, Y7 \
	VPXOR   Y7, Y6, Y6  \
	VPMULLD Y3, Y6, Y6  \
	VPADDD  Y2, Y6, Y6  \
	VPSRLD  $11, Y6, Y7 \
	VPXOR   Y7, Y6, Y6  \
	VPMULLD Y4, Y6, Y6  \
	VPSRLD  $15, Y6, Y7 \
	VPXOR   Y7, Y6, Y6  \
	VPMULLD Y5, Y6, Y6  \
	VPSRLD  $14, Y6, Y7 \
	VPXOR   Y7, Y6, Y6

// func mixBelow8(k1, k2 uint32, limits *[MaxHops]uint32, groups int) (set uint64)
TEXT ·mixBelow8(SB), NOSPLIT, $0-32
	MOVQ limits+8(FP), SI
	MOVQ groups+16(FP), DX
	MOVL k1+0(FP), AX
	VMOVD AX, X1
	VPBROADCASTD X1, Y1
	MOVL k2+4(FP), AX
	VMOVD AX, X2
	VPBROADCASTD X2, Y2
	VPBROADCASTD constants<>+0(SB), Y3
	VPBROADCASTD constants<>+4(SB), Y4
	VPBROADCASTD constants<>+8(SB), Y5
	VPBROADCASTD constants<>+12(SB), Y8
	VPADDD hopNumbers<>(SB), Y1, Y1
	XORQ AX, AX
	XORQ CX, CX

below:
	VMOVDQA Y1, Y6
	MIX
	VPMINUD (SI), Y6, Y7
	VPCMPEQD Y6, Y7, Y7
	VMOVMSKPS Y7, DI
	SHLQ CX, DI
	ORQ DI, AX
	ADDQ $8, CX
	ADDQ $32, SI
	VPADDD Y8, Y1, Y1
	DECQ DX
	JNZ below

	VZEROUPPER
	MOVQ AX, set+24(FP)
	RET

// func mixValues8(dst, values *uint32, k1, k2 uint32, groups, shift int)
TEXT ·mixValues8(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ values+8(FP), SI
	MOVL k1+16(FP), AX
	VMOVD AX, X1
	VPBROADCASTD X1, Y1
	MOVL k2+20(FP), AX
	VMOVD AX, X2
	VPBROADCASTD X2, Y2
	MOVQ groups+24(FP), DX
	VMOVQ shift+32(FP), X8
	VPBROADCASTD constants<>+0(SB), Y3
	VPBROADCASTD constants<>+4(SB), Y4
	VPBROADCASTD constants<>+8(SB), Y5

values:
	VPADDD (SI), Y1, Y6
	MIX
	VPSRLD X8, Y6, Y6
	VMOVDQU Y6, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	DECQ DX
	JNZ values

	VZEROUPPER
	RET

// func equal64AVX2(values *[64]uint32, want uint32) (set uint64)
TEXT ·equal64AVX2(SB), NOSPLIT, $0-24
	MOVQ values+0(FP), SI
	MOVL want+8(FP), AX
	VMOVD AX, X0
	VPBROADCASTD X0, Y0
	XORQ AX, AX
	XORQ CX, CX

equal:
	VPCMPEQD (SI), Y0, Y1
	VMOVMSKPS Y1, DI
	SHLQ CX, DI
	ORQ DI, AX
	ADDQ $32, SI
	ADDQ $8, CX
	CMPQ CX, $64
	JNE equal

	VZEROUPPER
	MOVQ AX, set+16(FP)
	RET

// func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL subleaf+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET

// func xgetbv() (eax uint32)
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, eax+0(FP)
	RET
