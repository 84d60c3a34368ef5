// Package scenario describes runs of the packet simulator as YAML, makes them, and sums up what
// came out.
package scenario
