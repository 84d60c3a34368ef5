#include "go_asm.h"
#include "textflag.h"
#include "draw_amd64.h"

// func scanVector(w *sought, first int, reach []uint16, hits *[scanSlots]int32) int
TEXT ·scanVector(SB), NOSPLIT, $0-56
	MOVQ         w+0(FP), AX
	VPBROADCASTQ sought_seed(AX), Z0
	VPBROADCASTQ sought_key(AX), Z1
	VBROADCASTSS sought_scale(AX), Y2
	VBROADCASTSS sought_slack(AX), Y3
	MIX_BEGIN
	MOVQ         first+8(FP), R8
	VPBROADCASTQ R8, Z7
	VPADDQ       lanes<>(SB), Z7, Z7
	VPMOVQD      Z7, Y10                  // slots
	VPSLLQ       $16, Z7, Z8              // slots, as drawOf has them
	MOVQ         $(8<<16), R8
	VPBROADCASTQ R8, Z9
	MOVL         $8, R8
	VPBROADCASTD R8, Y11
	VPTERNLOGQ   $0xff, Z14, Z14, Z14     // all ones
	MOVQ         reach_base+16(FP), SI
	MOVQ         reach_len+24(FP), CX
	MOVQ         hits+40(FP), DI
	XORQ         DX, DX                   // hits so far
	SHRQ         $3, CX
	JZ           done

loop:
	VPXORQ      Z8, Z1, Z12
	MIX(Z12, Z13)
	VPXORQ      Z0, Z12, Z12
	MIX(Z12, Z13)
	VPXORQ      Z14, Z12, Z12
	VCVTUQQ2PS  Z12, Y12                  // complements of the draws
	VPMOVZXWD   (SI), Y13
	VPSLLD      $16, Y13, Y13
	VMULPS      Y2, Y13, Y13
	VADDPS      Y3, Y13, Y13
	VCMPPS      $2, Y13, Y12, K1          // less or equal
	VPCOMPRESSD Y10, K1, Y15
	VMOVDQU     Y15, (DI)(DX*4)
	KMOVB       K1, BX
	POPCNTL     BX, BX
	ADDQ        BX, DX
	VPADDQ      Z9, Z8, Z8
	VPADDD      Y11, Y10, Y10
	ADDQ        $16, SI
	DECQ        CX
	JNZ         loop

done:
	VZEROUPPER
	MOVQ DX, ret+48(FP)
	RET
