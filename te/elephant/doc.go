// Package elephant gives long flows paths of least length through a network whose sources choose
// among equal-cost next hops.
//
// The best path is the one with the fewest flows on its fullest link (Detal et al., "Revisiting
// Flow-Based Load Balancing", 2013, section 4.2.1), or that of the least weight by telemetry; both
// are found on the graph of all shortest paths, without listing these. In a folded Clos network, as
// fat trees and leaves with spines are, edge coloring does better: no link carries more flows than
// it has to, whatever flows there are, at the price of moving some of them when another arrives.
package elephant
