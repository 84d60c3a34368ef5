#include "go_asm.h"
#include "textflag.h"

DATA places<>+0(SB)/8, $0
DATA places<>+8(SB)/8, $1
DATA places<>+16(SB)/8, $2
DATA places<>+24(SB)/8, $3
DATA places<>+32(SB)/8, $4
DATA places<>+40(SB)/8, $5
DATA places<>+48(SB)/8, $6
DATA places<>+56(SB)/8, $7
DATA places<>+64(SB)/8, $8
DATA places<>+72(SB)/8, $9
DATA places<>+80(SB)/8, $10
DATA places<>+88(SB)/8, $11
GLOBL places<>(SB), RODATA|NOPTR, $96

// mix of draw.go: Z4 is golden, Z5 and Z6 the factors.
#define MIX(x) \
	VPADDQ  Z4, x, x; \
	VPSRLQ  $30, x, Z30; \
	VPXORQ  Z30, x, x; \
	VPMULLQ Z5, x, x; \
	VPSRLQ  $27, x, Z30; \
	VPXORQ  Z30, x, x; \
	VPMULLQ Z6, x, x; \
	VPSRLQ  $31, x, Z30; \
	VPXORQ  Z30, x, x

// The draws of member i in the eight slots, with its place in their last bits: Z8 are the slots, as
// drawOf has them, Z0 the seed, and Z9 all bits but those of a place. There are CX members.
#define DRAW(i, d) \
	CMPQ        CX, $i; \
	JLE         drawn; \
	VPXORQ.BCST (8*i)(AX), Z8, d; \
	MIX(d); \
	VPXORQ      Z0, d, d; \
	MIX(d); \
	VPANDQ      Z9, d, d; \
	VPORQ.BCST  places<>+(8*i)(SB), d, d

// A comparator of network.go: a gets the higher draws.
#define ORDER(a, b) \
	VPMAXUQ   b, a, Z30; \
	VPMINUQ   b, a, b; \
	VMOVDQA64 Z30, a

// K2 gets the slots in which the draws of place i and of the next one are close: clearlyApart. Z10
// is what they may differ by besides.
#define APART(i, a, b) \
	CMPQ     CX, $i; \
	JLE      apart; \
	VPSUBQ   b, a, Z30; \
	VPSRLQ   $24, a, Z31; \
	VPADDQ   Z10, Z31, Z31; \
	VPCMPUQ  $2, Z31, Z30, K1; \
	KORW     K1, K2, K2

// The ids of the members whose places are in the last bits: Z2 and Z3 have those of all places.
#define NAME(d) \
	VPANDNQ  d, Z9, d; \
	VPERMI2Q Z3, Z2, d

// Four ids of a slot are one number.
#define PACK(a, b, c, d) \
	VPSLLQ $16, b, b; \
	VPSLLQ $32, c, c; \
	VPSLLQ $48, d, d; \
	VPORQ  b, a, a; \
	VPORQ  d, c, c; \
	VPORQ  c, a, a

// func orderVector(few *handful, seed uint64, count, first int, ids *[Depth / 4][nearSlots]uint64) (close uint8)
TEXT ·orderVector(SB), NOSPLIT, $0-41
	MOVQ         few+0(FP), AX
	VPBROADCASTQ seed+8(FP), Z0
	MOVQ         count+16(FP), CX
	VPBROADCASTQ first+24(FP), Z8
	VPADDQ       places<>(SB), Z8, Z8
	VPSLLQ       $16, Z8, Z8
	VMOVDQU64    handful_ids(AX), Z2
	VMOVDQU64    (handful_ids+64)(AX), Z3
	MOVQ         $0x9e3779b97f4a7c15, R8
	VPBROADCASTQ R8, Z4
	MOVQ         $0xbf58476d1ce4e5b9, R8
	VPBROADCASTQ R8, Z5
	MOVQ         $0x94d049bb133111eb, R8
	VPBROADCASTQ R8, Z6
	MOVQ         $~15, R8
	VPBROADCASTQ R8, Z9
	MOVQ         $16, R8
	VPBROADCASTQ R8, Z10
	VPXORQ       Z16, Z16, Z16
	VPXORQ       Z17, Z17, Z17
	VPXORQ       Z18, Z18, Z18
	VPXORQ       Z19, Z19, Z19
	VPXORQ       Z20, Z20, Z20
	VPXORQ       Z21, Z21, Z21
	VPXORQ       Z22, Z22, Z22
	VPXORQ       Z23, Z23, Z23
	VPXORQ       Z24, Z24, Z24
	VPXORQ       Z25, Z25, Z25
	VPXORQ       Z26, Z26, Z26
	VPXORQ       Z27, Z27, Z27
	VPXORQ       Z28, Z28, Z28
	DRAW(0, Z16)
	DRAW(1, Z17)
	DRAW(2, Z18)
	DRAW(3, Z19)
	DRAW(4, Z20)
	DRAW(5, Z21)
	DRAW(6, Z22)
	DRAW(7, Z23)
	DRAW(8, Z24)
	DRAW(9, Z25)
	DRAW(10, Z26)
	DRAW(11, Z27)

drawn:
	ORDER(Z16, Z24)
	ORDER(Z17, Z23)
	ORDER(Z18, Z22)
	ORDER(Z19, Z27)
	ORDER(Z20, Z26)
	ORDER(Z21, Z25)
	ORDER(Z16, Z17)
	ORDER(Z18, Z21)
	ORDER(Z19, Z20)
	ORDER(Z22, Z25)
	ORDER(Z23, Z24)
	ORDER(Z26, Z27)
	ORDER(Z16, Z18)
	ORDER(Z17, Z22)
	ORDER(Z21, Z26)
	ORDER(Z25, Z27)
	ORDER(Z16, Z19)
	ORDER(Z17, Z18)
	ORDER(Z20, Z22)
	ORDER(Z21, Z23)
	ORDER(Z24, Z27)
	ORDER(Z25, Z26)
	ORDER(Z17, Z20)
	ORDER(Z19, Z21)
	ORDER(Z22, Z24)
	ORDER(Z23, Z26)
	ORDER(Z17, Z19)
	ORDER(Z18, Z21)
	ORDER(Z22, Z25)
	ORDER(Z24, Z26)
	ORDER(Z18, Z19)
	ORDER(Z20, Z21)
	ORDER(Z22, Z23)
	ORDER(Z24, Z25)
	ORDER(Z20, Z22)
	ORDER(Z21, Z23)
	ORDER(Z19, Z20)
	ORDER(Z21, Z22)
	ORDER(Z23, Z24)
	KXORW K2, K2, K2
	APART(0, Z16, Z17)
	APART(1, Z17, Z18)
	APART(2, Z18, Z19)
	APART(3, Z19, Z20)
	APART(4, Z20, Z21)
	APART(5, Z21, Z22)
	APART(6, Z22, Z23)
	APART(7, Z23, Z24)
	APART(8, Z24, Z25)
	APART(9, Z25, Z26)
	APART(10, Z26, Z27)
	APART(11, Z27, Z28)

apart:
	NAME(Z16)
	NAME(Z17)
	NAME(Z18)
	NAME(Z19)
	NAME(Z20)
	NAME(Z21)
	NAME(Z22)
	NAME(Z23)
	NAME(Z24)
	NAME(Z25)
	NAME(Z26)
	NAME(Z27)
	PACK(Z16, Z17, Z18, Z19)
	PACK(Z20, Z21, Z22, Z23)
	PACK(Z24, Z25, Z26, Z27)
	MOVQ      ids+32(FP), DI
	VMOVDQU64 Z16, (DI)
	VMOVDQU64 Z20, 64(DI)
	VMOVDQU64 Z24, 128(DI)
	KMOVW     K2, AX
	MOVB      AX, close+40(FP)
	VZEROUPPER
	RET
