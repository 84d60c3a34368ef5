package accept_test

// Tests may import from beside.
import _ "fixture/pool"
