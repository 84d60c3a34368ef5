// Package peer lets the nodes of a cluster ask one another at their metrics ports. Both sides prove
// that they know the cluster's secret: who asks signs a challenge of the one who answers
// (signing.Request), who answers signs the digest of what it tells as the answer to this request
// alone. What is told is not encrypted.
package peer
