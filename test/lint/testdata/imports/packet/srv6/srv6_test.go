package srv6_test

// Tests may import from beside.
import _ "fixture/packet/flow"
