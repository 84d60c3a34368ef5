// Package together has the experiments in which servers, paths and sites are chosen in one
// decision.
package together
