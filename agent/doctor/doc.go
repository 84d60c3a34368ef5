// Package doctor names what is wrong with the set-up of a node: the cause, and what mends it.
//
// [Diagnose] is a function of the node's configuration and of [facts.Facts] about its machine, so
// that each diagnosis can be tested without the fault. Package linux gathers the facts.
package doctor
