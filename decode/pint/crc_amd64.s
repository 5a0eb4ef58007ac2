//go:build !purego

#include "textflag.h"

// A lane of four numbers, its bytes by significance.
DATA transpose<>+0(SB)/8, $0x0d0905010c080400
DATA transpose<>+8(SB)/8, $0x0f0b07030e0a0602
DATA transpose<>+16(SB)/8, $0x0d0905010c080400
DATA transpose<>+24(SB)/8, $0x0f0b07030e0a0602
GLOBL transpose<>(SB), RODATA|NOPTR, $32

// The words of two lanes in turn.
DATA gather<>+0(SB)/8, $0x0000000400000000
DATA gather<>+8(SB)/8, $0x0000000500000001
DATA gather<>+16(SB)/8, $0x0000000600000002
DATA gather<>+24(SB)/8, $0x0000000700000003
GLOBL gather<>(SB), RODATA|NOPTR, $32

// The inverse.
DATA scatter<>+0(SB)/8, $0x0000000200000000
DATA scatter<>+8(SB)/8, $0x0000000600000004
DATA scatter<>+16(SB)/8, $0x0000000300000001
DATA scatter<>+24(SB)/8, $0x0000000700000005
GLOBL scatter<>(SB), RODATA|NOPTR, $32

// CRC takes the CRC of eight numbers in Y0: eight bytes of the same significance come together, because a matrix is
// multiplied with eight bytes at once; each of the four groups goes through four matrices, one for each byte of the
// result. Y8 to Y11 hold the matrices, Y12 the CRC of zero, Y13 to Y15 the permutations; Y1 to Y4 are overwritten.
#define CRC \
	VPSHUFB Y13, Y0, Y0               \
	VPERMD  Y0, Y14, Y0               \
	VPERMQ  $0x00, Y0, Y1             \
	VPERMQ  $0x55, Y0, Y2             \
	VPERMQ  $0xaa, Y0, Y3             \
	VPERMQ  $0xff, Y0, Y4             \
	VGF2P8AFFINEQB $0, Y8, Y1, Y1     \
	VGF2P8AFFINEQB $0, Y9, Y2, Y2     \
	VGF2P8AFFINEQB $0, Y10, Y3, Y3    \
	VGF2P8AFFINEQB $0, Y11, Y4, Y4    \
	VPXOR   Y1, Y2, Y1                \
	VPXOR   Y3, Y4, Y3                \
	VPXOR   Y1, Y3, Y0                \
	VPERMD  Y0, Y15, Y0               \
	VPSHUFB Y13, Y0, Y0               \
	VPXOR   Y12, Y0, Y0

// SETUP fills the registers of CRC: R8 points to the matrices, with the CRC of zero behind them.
#define SETUP \
	VMOVDQU 0(R8), Y8                 \
	VMOVDQU 32(R8), Y9                \
	VMOVDQU 64(R8), Y10               \
	VMOVDQU 96(R8), Y11               \
	VPBROADCASTD 128(R8), Y12         \
	VMOVDQU transpose<>(SB), Y13      \
	VMOVDQU gather<>(SB), Y14         \
	VMOVDQU scatter<>(SB), Y15

// func crcBelow8(key uint32, m *crcMatrices, crcs *uint32, limits *[MaxHops]uint32, groups int) (set uint64)
TEXT ·crcBelow8(SB), NOSPLIT, $0-48
	MOVL key+0(FP), AX
	MOVQ m+8(FP), R8
	MOVQ crcs+16(FP), SI
	MOVQ limits+24(FP), DI
	MOVQ groups+32(FP), DX
	VMOVD AX, X7
	VPBROADCASTD X7, Y7
	SETUP
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
	VMOVQ shift+40(FP), X6
	VMOVD AX, X7
	VPBROADCASTD X7, Y7
	SETUP

values:
	VMOVDQU (SI), Y0
	CRC
	VPADDD Y7, Y0, Y0
	CRC
	VPADDD Y7, Y0, Y0
	CRC
	VPSRLD X6, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	DECQ DX
	JNZ values

	VZEROUPPER
	RET
