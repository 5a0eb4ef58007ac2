//go:build !purego

#include "textflag.h"

// A lane of four numbers, its bytes by significance.
DATA transpose<>+0(SB)/8, $0x0d0905010c080400
DATA transpose<>+8(SB)/8, $0x0f0b07030e0a0602
DATA transpose<>+16(SB)/8, $0x0d0905010c080400
DATA transpose<>+24(SB)/8, $0x0f0b07030e0a0602
GLOBL transpose<>(SB), RODATA|NOPTR, $32

// CRC takes the CRC of eight numbers in Y0. Within a lane of four, bytes of the same significance come together, because
// a matrix is multiplied with eight bytes at once; here four of them are there twice, for two bytes of the result. R8 points
// to the matrices; Y12 holds the CRC of zero, Y13 the permutation, and Y1 to Y6 are overwritten.
#define CRC \
	VPSHUFB Y13, Y0, Y0                    \
	VPSHUFD $0x00, Y0, Y1                  \
	VPSHUFD $0x55, Y0, Y2                  \
	VPSHUFD $0xaa, Y0, Y3                  \
	VPSHUFD $0xff, Y0, Y4                  \
	VGF2P8AFFINEQB $0, 0(R8), Y1, Y5       \
	VGF2P8AFFINEQB $0, 32(R8), Y1, Y1      \
	VGF2P8AFFINEQB $0, 64(R8), Y2, Y6      \
	VGF2P8AFFINEQB $0, 96(R8), Y2, Y2      \
	VPXOR   Y5, Y6, Y5                     \
	VPXOR   Y1, Y2, Y1                     \
	VGF2P8AFFINEQB $0, 128(R8), Y3, Y6     \
	VGF2P8AFFINEQB $0, 160(R8), Y3, Y3     \
	VGF2P8AFFINEQB $0, 192(R8), Y4, Y2     \
	VGF2P8AFFINEQB $0, 224(R8), Y4, Y4     \
	VPXOR   Y6, Y2, Y6                     \
	VPXOR   Y3, Y4, Y3                     \
	VPXOR   Y5, Y6, Y5                     \
	VPXOR   Y1, Y3, Y1                     \
	VSHUFPS $0x88, Y1, Y5, Y0              \
	VPSHUFB Y13, Y0, Y0                    \
	VPXOR   Y12, Y0, Y0

// func crcBelow8(key uint32, m *crcMatrices, crcs *uint32, limits *[MaxHops]uint32, groups int) (set uint64)
TEXT ·crcBelow8(SB), NOSPLIT, $0-48
	MOVL key+0(FP), AX
	MOVQ m+8(FP), R8
	MOVQ crcs+16(FP), SI
	MOVQ limits+24(FP), DI
	MOVQ groups+32(FP), DX
	VMOVD AX, X7
	VPBROADCASTD X7, Y7
	VPBROADCASTD 256(R8), Y12
	VMOVDQU transpose<>(SB), Y13
	XORQ AX, AX
	XORQ CX, CX

below:
	VPADDD (SI), Y7, Y0
	CRC
	VPADDD Y7, Y0, Y0
	CRC
	VPMINUD (DI), Y0, Y1
	VPCMPEQD Y0, Y1, Y1
	VMOVMSKPS Y1, R9
	SHLQ CX, R9
	ORQ R9, AX
	ADDQ $8, CX
	ADDQ $32, SI
	ADDQ $32, DI
	DECQ DX
	JNZ below

	VZEROUPPER
	MOVQ AX, set+40(FP)
	RET

// func crcValues8(dst, values *uint32, key uint32, m *crcMatrices, groups, shift int)
TEXT ·crcValues8(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ values+8(FP), SI
	MOVL key+16(FP), AX
	MOVQ m+24(FP), R8
	MOVQ groups+32(FP), DX
	VMOVQ shift+40(FP), X8
	VMOVD AX, X7
	VPBROADCASTD X7, Y7
	VPBROADCASTD 256(R8), Y12
	VMOVDQU transpose<>(SB), Y13

values:
	VMOVDQU (SI), Y0
	CRC
	VPADDD Y7, Y0, Y0
	CRC
	VPADDD Y7, Y0, Y0
	CRC
	VPSRLD X8, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	DECQ DX
	JNZ values

	VZEROUPPER
	RET
