#include "go_asm.h"
#include "textflag.h"
#include "draw_amd64.h"
#include "order_amd64.h"

// The order of two vectors of eight numbers in which a number of the first is beside that of the
// second.
DATA pairs<>+0(SB)/8, $0
DATA pairs<>+8(SB)/8, $8
DATA pairs<>+16(SB)/8, $1
DATA pairs<>+24(SB)/8, $9
DATA pairs<>+32(SB)/8, $2
DATA pairs<>+40(SB)/8, $10
DATA pairs<>+48(SB)/8, $3
DATA pairs<>+56(SB)/8, $11
DATA pairs<>+64(SB)/8, $4
DATA pairs<>+72(SB)/8, $12
DATA pairs<>+80(SB)/8, $5
DATA pairs<>+88(SB)/8, $13
DATA pairs<>+96(SB)/8, $6
DATA pairs<>+104(SB)/8, $14
DATA pairs<>+112(SB)/8, $7
DATA pairs<>+120(SB)/8, $15
GLOBL pairs<>(SB), RODATA|NOPTR, $128

// WORD adds the words of the members at a place to the numbers of the rows, by so many bits up.
#define WORD(place, up, rows) \
	VPERMW.Z Z1, place, K3, Z26; \
	VPSLLQ   $up, Z26, Z26; \
	VPORQ    Z26, rows, rows

// NEXT draws for the next member, if there is one.
#define NEXT \
	CMPQ BX, CX; \
	JGE  ordered; \
	DRAW; \
	PLACE; \
	INCQ BX

// func rowsVector(keys []uint64, seed uint64, first int, words *[rowMembers]uint16, mask, rest *Row, rows *[RowSlots]Row) (close uint64)
TEXT ·rowsVector(SB), NOSPLIT, $0-80
	MOVQ            keys_base+0(FP), AX
	MOVQ            keys_len+8(FP), CX
	VPBROADCASTQ    seed+24(FP), Z0
	VPBROADCASTQ    first+32(FP), Z8
	VPADDQ          lanes<>(SB), Z8, Z8
	VPSLLQ          $16, Z8, Z8          // slots, as drawOf has them
	MOVQ            words+40(FP), SI
	VMOVDQU64       (SI), Z1
	MOVQ            mask+48(FP), SI
	VBROADCASTI64X2 (SI), Z2
	MOVQ            rest+56(FP), SI
	VBROADCASTI64X2 (SI), Z3
	MOVQ            rows+64(FP), DI
	MIX_BEGIN
	ORDER_BEGIN
	MOVQ            $(const_nearSlots<<16), R8
	VPBROADCASTQ    R8, Z7
	VMOVDQU64       pairs<>+0(SB), Z13
	VMOVDQU64       pairs<>+64(SB), Z14
	MOVL            $0x11111111, R8      // the last word of each number
	KMOVD           R8, K3
	XORQ            DX, DX               // slots that are close
	MOVQ            $(const_RowSlots/const_nearSlots), R9

slots:
	VPXORQ Z11, Z11, Z11 // place of the member
	CLEAR
	XORQ   BX, BX
	NEXT
	VMOVDQA64 Z31, Z16
	NEXT
	KEEP(Z16)
	VMOVDQA64 Z31, Z17
	NEXT
	KEEP(Z16)
	KEEP(Z17)
	VMOVDQA64 Z31, Z18
	NEXT
	KEEP(Z16)
	KEEP(Z17)
	KEEP(Z18)
	VMOVDQA64 Z31, Z19
	NEXT
	KEEP(Z16)
	KEEP(Z17)
	KEEP(Z18)
	KEEP(Z19)
	VMOVDQA64 Z31, Z20
	NEXT
	KEEP(Z16)
	KEEP(Z17)
	KEEP(Z18)
	KEEP(Z19)
	KEEP(Z20)
	VMOVDQA64 Z31, Z21

member:
	NEXT
	KEEP_BEST
	VPMAXUQ Z31, Z22, Z22
	JMP  member

ordered:
	APART_BEST

apart:
	KMOVW     K2, R8
	SHLQ      $56, R8
	SHRQ      $8, DX
	ORQ       R8, DX
	VPERMW.Z  Z1, Z16, K3, Z24
	WORD(Z17, 16, Z24)
	WORD(Z18, 32, Z24)
	WORD(Z19, 48, Z24)
	VPERMW.Z  Z1, Z20, K3, Z25
	WORD(Z21, 16, Z25)
	VMOVDQA64 Z13, Z27
	VPERMI2Q  Z25, Z24, Z27
	VMOVDQA64 Z14, Z28
	VPERMI2Q  Z25, Z24, Z28
	VPANDQ    Z2, Z27, Z27
	VPORQ     Z3, Z27, Z27
	VPANDQ    Z2, Z28, Z28
	VPORQ     Z3, Z28, Z28
	VMOVDQU64 Z27, 0(DI)
	VMOVDQU64 Z28, 64(DI)
	ADDQ      $128, DI
	VPADDQ    Z7, Z8, Z8
	DECQ      R9
	JNZ       slots
	VZEROUPPER
	MOVQ      DX, close+72(FP)
	RET
