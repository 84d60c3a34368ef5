// Package churn holds the experiments on servers that leave and return under connections: those of
// VRF-shadowing (section VI), with the policies of Sextant beside it, and the second act of the
// demonstration.
package churn
