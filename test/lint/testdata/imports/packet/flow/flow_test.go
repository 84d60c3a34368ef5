package flow_test

// Tests may not import from above.
import _ "fixture/sim/hunting"
