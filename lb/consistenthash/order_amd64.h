// What vector code that orders members has in common: Z8 are eight slots, AX the keys of the
// members, CX how many there are, BX the member.

// ORDER_BEGIN puts what PLACE and APART need into Z9, Z10, Z12 and X15.
#define ORDER_BEGIN \
	MOVQ         $~const_nearPlaces, R8; \
	VPBROADCASTQ R8, Z9; \
	MOVQ         $(const_nearPlaces+1), R8; \
	VPBROADCASTQ R8, Z10; \
	MOVQ         $1, R8; \
	VPBROADCASTQ R8, Z12; \
	MOVQ         $const_closeDraws, R8; \
	VMOVQ        R8, X15

// DRAW puts the draws of the member into Z31.
#define DRAW \
	VPXORQ.BCST (AX)(BX*8), Z8, Z31; \
	MIX(Z31, Z30); \
	VPXORQ      Z0, Z31, Z31; \
	MIX(Z31, Z30)

// PLACE puts the place Z11 of the member in place of the last bits of Z31, and counts it up.
#define PLACE \
	VPANDQ Z9, Z31, Z31; \
	VPORQ  Z11, Z31, Z31; \
	VPADDQ Z12, Z11, Z11

// A place of the order keeps the higher draws, and hands on the lower ones in Z31.
#define KEEP(place) \
	VPMAXUQ   Z31, place, Z30; \
	VPMINUQ   Z31, place, Z31; \
	VMOVDQA64 Z30, place

// K2 gets the slots in which the draws of place i and of the next one are close, as clearlyApart
// says. Z10 is by what they may differ besides, X15 by which part of themselves in bits.
#define APART(i, place, next) \
	CMPQ    CX, $i; \
	JLE     apart; \
	VPSUBQ  next, place, Z30; \
	VPSRLQ  X15, place, Z31; \
	VPADDQ  Z10, Z31, Z31; \
	VPCMPUQ $2, Z31, Z30, K1; \
	KORW    K1, K2, K2

// CLEAR empties the places of the best members, RowPlaces of them, and that behind.
#define CLEAR \
	VPXORQ Z16, Z16, Z16; \
	VPXORQ Z17, Z17, Z17; \
	VPXORQ Z18, Z18, Z18; \
	VPXORQ Z19, Z19, Z19; \
	VPXORQ Z20, Z20, Z20; \
	VPXORQ Z21, Z21, Z21; \
	VPXORQ Z22, Z22, Z22

// KEEP_BEST keeps in the places of the best.
#define KEEP_BEST \
	KEEP(Z16); \
	KEEP(Z17); \
	KEEP(Z18); \
	KEEP(Z19); \
	KEEP(Z20); \
	KEEP(Z21)

// APART_BEST compares the best, and the last of them with the place behind.
#define APART_BEST \
	KXORW K2, K2, K2; \
	APART(0, Z16, Z17); \
	APART(1, Z17, Z18); \
	APART(2, Z18, Z19); \
	APART(3, Z19, Z20); \
	APART(4, Z20, Z21); \
	APART(5, Z21, Z22)
