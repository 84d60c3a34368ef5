// Package cflb runs the experiments of "Revisiting Flow-Based Load Balancing: Stateless Path
// Selection in Data Center Networks" (Detal et al., Computer Networks 57, 2013): how evenly hash
// and ciphers share packets, and subflows of the kernel's MPTCP over paths that are chosen or
// random, in the lab. Figures 1 and 2 are in package disjoint, figure 9 in package fabric.
package cflb
