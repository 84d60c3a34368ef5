// Package experiment runs experiments of the literature again, records their results with the
// source's numbers beside them, and compares policies in the lab, on the real data plane.
package experiment
