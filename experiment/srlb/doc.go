// Package srlb runs the experiments of the SRLB paper again, on the real data plane in the lab and
// in the simulator, and those that the paper did not make: more sizes, unequal servers, and the
// policy that needs no tuning.
package srlb
