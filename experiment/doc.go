// Package experiment runs comparisons in the lab, on the real data plane, and judges them against theory.
package experiment
