// What the vector code of this package has in common: draws of eight slots.

DATA lanes<>+0(SB)/8, $0
DATA lanes<>+8(SB)/8, $1
DATA lanes<>+16(SB)/8, $2
DATA lanes<>+24(SB)/8, $3
DATA lanes<>+32(SB)/8, $4
DATA lanes<>+40(SB)/8, $5
DATA lanes<>+48(SB)/8, $6
DATA lanes<>+56(SB)/8, $7
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// MIX_BEGIN puts what MIX needs into Z4 to Z6: golden and the factors of mix in draw.go.
#define MIX_BEGIN \
	MOVQ         $0x9e3779b97f4a7c15, R8; \
	VPBROADCASTQ R8, Z4; \
	MOVQ         $0xbf58476d1ce4e5b9, R8; \
	VPBROADCASTQ R8, Z5; \
	MOVQ         $0x94d049bb133111eb, R8; \
	VPBROADCASTQ R8, Z6

// MIX is mix of draw.go; t is lost.
#define MIX(x, t) \
	VPADDQ  Z4, x, x; \
	VPSRLQ  $30, x, t; \
	VPXORQ  t, x, x; \
	VPMULLQ Z5, x, x; \
	VPSRLQ  $27, x, t; \
	VPXORQ  t, x, x; \
	VPMULLQ Z6, x, x; \
	VPSRLQ  $31, x, t; \
	VPXORQ  t, x, x
