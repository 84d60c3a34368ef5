// Package doctor diagnoses faults in the set-up of a node: cause and remedy.
//
// [Diagnose] is a function of the node's configuration and of [facts.Facts] about its machine, so
// that each diagnosis can be tested without the fault. Package linux gathers the facts.
package doctor
