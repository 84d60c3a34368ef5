#include "go_asm.h"
#include "textflag.h"
#include "draw_amd64.h"
#include "order_amd64.h"

// SCORE makes scores of the draws in Z31, as standing in score.go has them: all bits of a number
// that is not negative inverted, so that the lowest score is the highest word. R9 is the logarithms'
// table, R10 the inverse weights, Z14 the lower half of a word, Z29 all of it. Z1 to Z3 and Z7 are
// lost.
#define SCORE \
	VPORQ       Z12, Z31, Z31; \
	VPLZCNTQ    Z31, Z1; \
	VPSLLVQ     Z1, Z31, Z31; \
	VPADDQ      Z31, Z31, Z31; \
	VPSRLQ      $(64-const_logBits), Z31, Z2; \
	VPSLLQ      $const_logBits, Z31, Z31; \
	VPSRLQ      $(64-const_logScale), Z31, Z31; \
	KXNORW      K3, K3, K3; \
	VPGATHERQQ  (R9)(Z2*4), K3, Z3; \
	VPSRLQ      $32, Z3, Z7; \
	VPANDQ      Z14, Z3, Z3; \
	VPSUBQ      Z3, Z7, Z7; \
	VPMULUDQ    Z7, Z31, Z31; \
	VPSRLQ      $const_logScale, Z31, Z31; \
	VPADDQ      Z3, Z31, Z31; \
	VPADDQ      Z12, Z1, Z1; \
	VPSLLQ      $const_logScale, Z1, Z1; \
	VPSUBQ      Z31, Z1, Z31; \
	VCVTUQQ2PD  Z31, Z31; \
	VMULPD.BCST (R10)(BX*8), Z31, Z31; \
	VPXORQ      Z29, Z31, Z31

// func orderVector(keys []uint64, inverses *float64, logs *[1<<logBits + 1]uint32, seed uint64, first int, words *[Depth + 1][nearSlots]uint64) (close uint8)
TEXT ·orderVector(SB), NOSPLIT, $0-65
	MOVQ         keys_base+0(FP), AX
	MOVQ         keys_len+8(FP), CX
	MOVQ         inverses+24(FP), R10
	MOVQ         logs+32(FP), R9
	VPBROADCASTQ seed+40(FP), Z0
	VPBROADCASTQ first+48(FP), Z8
	VPADDQ       lanes<>(SB), Z8, Z8
	VPSLLQ       $16, Z8, Z8            // slots, as drawOf has them
	MIX_BEGIN
	ORDER_BEGIN
	VPXORQ       Z11, Z11, Z11          // place of the member
	CLEAR
	VPXORQ       Z23, Z23, Z23
	VPXORQ       Z24, Z24, Z24
	VPXORQ       Z25, Z25, Z25
	VPXORQ       Z26, Z26, Z26
	VPXORQ       Z27, Z27, Z27
	VPXORQ       Z28, Z28, Z28
	XORQ         BX, BX
	TESTQ        R10, R10
	JEQ          member

	// The last bits of scores alone are rounded.
	MOVQ         $63, R8
	VMOVQ        R8, X15
	MOVQ         $0xffffffff, R8
	VPBROADCASTQ R8, Z14
	MOVQ         $-1, R8
	VPBROADCASTQ R8, Z29

member:
	CMPQ        BX, CX
	JGE         ordered
	DRAW
	TESTQ       R10, R10
	JEQ         drawn
	SCORE

drawn:
	PLACE
	KEEP_BEST
	KEEP(Z22)
	KEEP(Z23)
	KEEP(Z24)
	KEEP(Z25)
	KEEP(Z26)
	KEEP(Z27)
	KEEP(Z28)
	INCQ        BX
	JMP         member

ordered:
	APART_BEST
	APART(6, Z22, Z23)
	APART(7, Z23, Z24)
	APART(8, Z24, Z25)
	APART(9, Z25, Z26)
	APART(10, Z26, Z27)
	APART(11, Z27, Z28)

apart:
	MOVQ      words+56(FP), DI
	VMOVDQU64 Z16, 0(DI)
	VMOVDQU64 Z17, 64(DI)
	VMOVDQU64 Z18, 128(DI)
	VMOVDQU64 Z19, 192(DI)
	VMOVDQU64 Z20, 256(DI)
	VMOVDQU64 Z21, 320(DI)
	VMOVDQU64 Z22, 384(DI)
	VMOVDQU64 Z23, 448(DI)
	VMOVDQU64 Z24, 512(DI)
	VMOVDQU64 Z25, 576(DI)
	VMOVDQU64 Z26, 640(DI)
	VMOVDQU64 Z27, 704(DI)
	VMOVDQU64 Z28, 768(DI)
	KMOVW     K2, AX
	MOVB      AX, close+64(FP)
	VZEROUPPER
	RET
