// Package fabric holds experiments on path choice in data center fabrics, in the packet simulator:
// figure 9 of the CFLB paper, and the baselines of the literature side by side.
package fabric
