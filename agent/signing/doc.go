// Package signing signs and verifies what nodes of a cluster exchange: requests for the previous
// owners of services and for what a node counts, the answers, and records in etcd. Keys are derived
// from the cluster's secret, one for each purpose, so that a signature for one purpose is invalid
// for another.
package signing
