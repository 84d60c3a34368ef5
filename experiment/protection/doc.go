// Package protection holds the experiments on traffic that is sent over two disjoint paths at once:
// those of Aubry, Lebrun, Deville and Bonaventure (section II), with and without elimination of the
// copies, and a stream of telemetry over UDP.
//
// Every chunk of a measurement has a lab of its own, that of examples/protection.yaml, so that
// chunks can run side by side, and an interrupted experiment resumes.
package protection
