#include "go_asm.h"
#include "textflag.h"

// What orderVector and scanVector do, by processors that multiply four numbers of 32 bits at once:
// eight slots are two vectors.

#define CONSTANT(name, value) \
	DATA  name<>+0(SB)/8, value; \
	DATA  name<>+8(SB)/8, value; \
	DATA  name<>+16(SB)/8, value; \
	DATA  name<>+24(SB)/8, value; \
	GLOBL name<>(SB), RODATA|NOPTR, $32

// golden and the factors of mix in draw.go, whose upper halves are factors by themselves
CONSTANT(golden, $0x9e3779b97f4a7c15)
CONSTANT(first, $0xbf58476d1ce4e5b9)
CONSTANT(firstUpper, $0xbf58476d)
CONSTANT(second, $0x94d049bb133111eb)
CONSTANT(secondUpper, $0x94d049bb)

CONSTANT(one, $1)
CONSTANT(places, $~const_nearPlaces)
CONSTANT(rounded, $(const_nearPlaces+1))
CONSTANT(lower, $0xffffffff)
CONSTANT(positive, $0x7fffffffffffffff)

// 2^52 and 2^84, whose last bits stand for 1 and 2^32, and their sum
CONSTANT(ones, $0x4330000000000000)
CONSTANT(uppers, $0x4530000000000000)
CONSTANT(both, $0x4530000000100000)
CONSTANT(zeros, $1087) // exponent of a number with one zero less than none

DATA four<>+0(SB)/8, $0
DATA four<>+8(SB)/8, $1
DATA four<>+16(SB)/8, $2
DATA four<>+24(SB)/8, $3
GLOBL four<>(SB), RODATA|NOPTR, $32

// MULTIPLY keeps the lower halves of products, as no instruction does; t and u are lost.
#define MULTIPLY(factor, upper, x, t, u) \
	VPSRLQ   $32, x, t; \
	VPMULUDQ factor, t, t; \
	VPMULUDQ upper, x, u; \
	VPADDQ   u, t, t; \
	VPSLLQ   $32, t, t; \
	VPMULUDQ factor, x, x; \
	VPADDQ   t, x, x

// MIX is mix of draw.go; t and u are lost.
#define MIX(x, t, u) \
	VPADDQ Y2, x, x; \
	VPSRLQ $30, x, t; \
	VPXOR  t, x, x; \
	MULTIPLY(Y3, Y4, x, t, u); \
	VPSRLQ $27, x, t; \
	VPXOR  t, x, x; \
	MULTIPLY(Y5, Y6, x, t, u); \
	VPSRLQ $31, x, t; \
	VPXOR  t, x, x

// MIX_BEGIN puts what MIX needs into Y2 to Y6.
#define MIX_BEGIN \
	VMOVDQU golden<>(SB), Y2; \
	VMOVDQU first<>(SB), Y3; \
	VMOVDQU firstUpper<>(SB), Y4; \
	VMOVDQU second<>(SB), Y5; \
	VMOVDQU secondUpper<>(SB), Y6

// DRAW makes draws of keys that are combined with slots, in Y8 and Y13. Y0 is the seed.
#define DRAW \
	MIX(Y8, Y9, Y10); \
	MIX(Y13, Y14, Y15); \
	VPXOR Y0, Y8, Y8; \
	VPXOR Y0, Y13, Y13; \
	MIX(Y8, Y9, Y10); \
	MIX(Y13, Y14, Y15)

// SCORE makes scores of the draws in Y8, as standing in score.go has them, inverted so that the
// lowest score is the highest word. A number that has each bit cleared behind a one has the same
// zeros before it, and no other ones when it is rounded. Y9 to Y12 are lost.
#define SCORE \
	VPOR         one<>(SB), Y8, Y8; \
	VPSRLQ       $1, Y8, Y9; \
	VPANDN       Y8, Y9, Y9; \
	VPSRLQ       $32, Y9, Y10; \
	VPOR         uppers<>(SB), Y10, Y10; \
	VSUBPD       both<>(SB), Y10, Y10; \
	VPBLENDD     $0xaa, ones<>(SB), Y9, Y9; \
	VADDPD       Y10, Y9, Y9; \
	VPSRLQ       $52, Y9, Y9; \
	VMOVDQU      zeros<>(SB), Y10; \
	VPSUBQ       Y9, Y10, Y10; \
	VPSLLVQ      Y10, Y8, Y8; \
	VPSRLQ       $(64-const_logBits), Y8, Y9; \
	VPSLLQ       $const_logBits, Y8, Y8; \
	VPSRLQ       $(64-const_logScale), Y8, Y8; \
	VPCMPEQD     Y11, Y11, Y11; \
	VPGATHERQQ   Y11, (R9)(Y9*4), Y12; \
	VPSRLQ       $32, Y12, Y9; \
	VPAND        lower<>(SB), Y12, Y12; \
	VPSUBQ       Y12, Y9, Y9; \
	VPMULUDQ     Y9, Y8, Y8; \
	VPSRLQ       $const_logScale, Y8, Y8; \
	VPADDQ       Y12, Y8, Y8; \
	VPSLLQ       $const_logScale, Y10, Y10; \
	VPSUBQ       Y8, Y10, Y8; \
	VPOR         ones<>(SB), Y8, Y8; \
	VSUBPD       ones<>(SB), Y8, Y8; \
	VBROADCASTSD (R10)(BX*8), Y9; \
	VMULPD       Y9, Y8, Y8; \
	VPXOR        positive<>(SB), Y8, Y8

// A place of the order keeps the higher words, and hands on the lower ones in Y13.
#define KEEP(place) \
	VPCMPGTQ  place, Y13, Y14; \
	VPBLENDVB Y14, Y13, place, Y15; \
	VPBLENDVB Y14, place, Y13, Y13; \
	VMOVDQA   Y15, place

// APART clears in Y15 the slots in which the words of place i and of the next one are close, as
// clearlyApart says.
#define APART(i, place, next) \
	CMPQ     CX, $i; \
	JLE      apart; \
	VPSUBQ   next, place, Y13; \
	VPSRLQ   shift-16(SP), place, Y14; \
	VPADDQ   rounded<>(SB), Y14, Y14; \
	VPCMPGTQ Y14, Y13, Y13; \
	VPAND    Y13, Y15, Y15

// KEEP_SHALLOW keeps in the places of the best, RowPlaces of them.
#define KEEP_SHALLOW \
	KEEP(Y0); \
	KEEP(Y1); \
	KEEP(Y2); \
	KEEP(Y3); \
	KEEP(Y4); \
	KEEP(Y5)

// KEEP_LAST keeps in the place behind all others.
#define KEEP_LAST(place) \
	VPCMPGTQ  place, Y13, Y14; \
	VPBLENDVB Y14, Y13, place, place

CONSTANT(others, $(4<<16)) // from a slot of the first half to that of the second

// LOAD_BEST and LOAD_REST take the places of the half R11 from the words: the best with that behind,
// and all others.
#define LOAD_BEST \
	VMOVDQU 0(DI)(R11*1), Y0; \
	VMOVDQU 64(DI)(R11*1), Y1; \
	VMOVDQU 128(DI)(R11*1), Y2; \
	VMOVDQU 192(DI)(R11*1), Y3; \
	VMOVDQU 256(DI)(R11*1), Y4; \
	VMOVDQU 320(DI)(R11*1), Y5; \
	VMOVDQU 384(DI)(R11*1), Y6

#define LOAD_REST \
	VMOVDQU 448(DI)(R11*1), Y7; \
	VMOVDQU 512(DI)(R11*1), Y8; \
	VMOVDQU 576(DI)(R11*1), Y9; \
	VMOVDQU 640(DI)(R11*1), Y10; \
	VMOVDQU 704(DI)(R11*1), Y11; \
	VMOVDQU 768(DI)(R11*1), Y12

// Members are ordered some at a time, as many as there is space for.
#define MEMBERS 10

// Words have 63 bits, as such processors compare numbers with a sign.
//
// func orderHalves(keys []uint64, inverses *float64, logs *[1<<logBits + 1]uint32, seed uint64, first int, deep bool, words *[Depth + 1][nearSlots]uint64) (close uint8)
TEXT ·orderHalves(SB), NOSPLIT, $656-73
	MOVQ  keys_base+0(FP), AX
	MOVQ  keys_len+8(FP), CX
	MOVQ  inverses+24(FP), R10
	MOVQ  logs+32(FP), R9
	MOVQ  words+64(FP), DI
	MOVQ  $const_closeDraws, R8
	TESTQ R10, R10
	JEQ   begin
	MOVQ  $63, R8               // the last bits of scores alone are rounded

begin:
	MOVQ    R8, shift-16(SP)
	MOVQ    $0, shift-8(SP)
	VPXOR   Y0, Y0, Y0
	MOVQ    DI, R8
	LEAQ    (64*const_Depth+64)(DI), R11

empty:
	VMOVDQU Y0, 0(R8)
	VMOVDQU Y0, 32(R8)
	ADDQ    $64, R8
	CMPQ    R8, R11
	JLT     empty
	XORQ    BX, BX     // member
	TESTQ   CX, CX
	JEQ     ordered

some:
	LEAQ         MEMBERS(BX), R13
	CMPQ         R13, CX
	CMOVQGT      CX, R13
	LEAQ         drawn-656(SP), SI
	VPBROADCASTQ seed+40(FP), Y0
	VPBROADCASTQ first+48(FP), Y1
	VPADDQ       four<>(SB), Y1, Y1
	VPSLLQ       $16, Y1, Y1           // slots, as drawOf has them
	MIX_BEGIN
	VMOVDQU      places<>(SB), Y7

member:
	VPBROADCASTQ (AX)(BX*8), Y8
	VPADDQ       others<>(SB), Y1, Y13
	VPXOR        Y13, Y8, Y13
	VPXOR        Y1, Y8, Y8
	DRAW
	TESTQ        R10, R10
	JNE          score
	VPSRLQ       $1, Y8, Y8
	VPSRLQ       $1, Y13, Y13
	JMP          word

score:
	SCORE
	VMOVDQA Y8, Y14
	VMOVDQA Y13, Y8
	SCORE
	VMOVDQA Y8, Y13
	VMOVDQA Y14, Y8

word:
	VMOVQ        BX, X9
	VPBROADCASTQ X9, Y9
	VPAND        Y7, Y8, Y8
	VPAND        Y7, Y13, Y13
	VPOR         Y9, Y8, Y8
	VPOR         Y9, Y13, Y13
	VMOVDQU      Y8, 0(SI)
	VMOVDQU      Y13, 32(SI)
	ADDQ         $64, SI
	INCQ         BX
	CMPQ         BX, R13
	JLT          member
	XORQ         R11, R11              // bytes to the half

half:
	LEAQ    drawn-656(SP), R8
	ADDQ    R11, R8
	LOAD_BEST
	CMPB    deep+56(FP), $0
	JNE     deep

shallow:
	VMOVDQU (R8), Y13
	ADDQ    $64, R8
	KEEP_SHALLOW
	KEEP_LAST(Y6)
	CMPQ    R8, SI
	JLT     shallow
	JMP     kept

deep:
	LOAD_REST

deeper:
	VMOVDQU (R8), Y13
	ADDQ    $64, R8
	KEEP_SHALLOW
	KEEP(Y6)
	KEEP(Y7)
	KEEP(Y8)
	KEEP(Y9)
	KEEP(Y10)
	KEEP(Y11)
	KEEP_LAST(Y12)
	CMPQ    R8, SI
	JLT     deeper
	VMOVDQU Y7, 448(DI)(R11*1)
	VMOVDQU Y8, 512(DI)(R11*1)
	VMOVDQU Y9, 576(DI)(R11*1)
	VMOVDQU Y10, 640(DI)(R11*1)
	VMOVDQU Y11, 704(DI)(R11*1)
	VMOVDQU Y12, 768(DI)(R11*1)

kept:
	VMOVDQU Y0, 0(DI)(R11*1)
	VMOVDQU Y1, 64(DI)(R11*1)
	VMOVDQU Y2, 128(DI)(R11*1)
	VMOVDQU Y3, 192(DI)(R11*1)
	VMOVDQU Y4, 256(DI)(R11*1)
	VMOVDQU Y5, 320(DI)(R11*1)
	VMOVDQU Y6, 384(DI)(R11*1)
	XORQ    $32, R11
	JNE     half
	CMPQ    BX, CX
	JLT     some

ordered:
	XORQ R11, R11
	XORQ DX, DX   // slots that are not close

compare:
	LOAD_BEST
	VPCMPEQQ Y15, Y15, Y15
	APART(0, Y0, Y1)
	APART(1, Y1, Y2)
	APART(2, Y2, Y3)
	APART(3, Y3, Y4)
	APART(4, Y4, Y5)
	APART(5, Y5, Y6)
	CMPB    deep+56(FP), $0
	JEQ     apart
	LOAD_REST
	APART(6, Y6, Y7)
	APART(7, Y7, Y8)
	APART(8, Y8, Y9)
	APART(9, Y9, Y10)
	APART(10, Y10, Y11)
	APART(11, Y11, Y12)

apart:
	VMOVMSKPD Y15, R8
	SHLQ      $4, R8
	SHRQ      $4, DX
	ORQ       R8, DX
	XORQ      $32, R11
	JNE       compare
	NOTQ      DX
	MOVB      DX, close+72(FP)
	VZEROUPPER
	RET

// Slots of the two vectors whose upper halves make one of eight numbers, in ascending order.
DATA outer<>+0(SB)/8, $(0<<16)
DATA outer<>+8(SB)/8, $(1<<16)
DATA outer<>+16(SB)/8, $(4<<16)
DATA outer<>+24(SB)/8, $(5<<16)
GLOBL outer<>(SB), RODATA|NOPTR, $32
CONSTANT(inner, $(2<<16)) // from a slot of the first to that of the second
CONSTANT(eight, $(8<<16))

// 2^-33 twice: the upper 31 bits of a number are the number by it.
CONSTANT(upper31, $0x2f0000002f000000)

// func scanHalves(w *sought, first int, reach []uint16, hits *[scanSlots]int32) int
TEXT ·scanHalves(SB), NOSPLIT, $0-56
	MOVQ         w+0(FP), AX
	VPBROADCASTQ sought_seed(AX), Y0
	VPBROADCASTQ first+8(FP), Y1
	VPSLLQ       $16, Y1, Y1
	VPADDQ       outer<>(SB), Y1, Y1     // slots, as drawOf has them
	MIX_BEGIN
	VPBROADCASTQ sought_key(AX), Y7
	VBROADCASTSS sought_scale(AX), Y11
	VBROADCASTSS sought_slack(AX), Y12
	VMULPS       upper31<>(SB), Y11, Y11
	VMULPS       upper31<>(SB), Y12, Y12
	MOVQ         first+8(FP), R9
	MOVQ         reach_base+16(FP), SI
	MOVQ         reach_len+24(FP), CX
	MOVQ         hits+40(FP), DI
	XORQ         DX, DX                  // hits so far
	SHRQ         $3, CX
	JZ           done

loop:
	VPADDQ    inner<>(SB), Y1, Y13
	VPXOR     Y7, Y13, Y13
	VPXOR     Y7, Y1, Y8
	DRAW
	VSHUFPS   $0xdd, Y13, Y8, Y8
	VPCMPEQD  Y9, Y9, Y9
	VPXOR     Y9, Y8, Y8
	VPSRLD    $1, Y8, Y8
	VCVTDQ2PS Y8, Y8             // complements of the draws
	VPMOVZXWD (SI), Y9
	VPSLLD    $16, Y9, Y9
	VMULPS    Y11, Y9, Y9
	VADDPS    Y12, Y9, Y9
	VCMPPS    $2, Y9, Y8, Y8     // less or equal
	VMOVMSKPS Y8, BX
	TESTL     BX, BX
	JZ        next

hit:
	BSFL  BX, R8
	LEAL  -1(BX), R10
	ANDL  R10, BX
	ADDL  R9, R8
	MOVL  R8, (DI)(DX*4)
	INCQ  DX
	TESTL BX, BX
	JNZ   hit

next:
	VPADDQ eight<>(SB), Y1, Y1
	ADDQ   $8, R9
	ADDQ   $16, SI
	DECQ   CX
	JNZ    loop

done:
	VZEROUPPER
	MOVQ DX, ret+48(FP)
	RET
