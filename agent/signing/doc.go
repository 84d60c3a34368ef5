// Package signing signs and verifies what edges of a cluster exchange about previous owners of
// their services: answers between edges, and records in etcd. Keys are derived from the cluster's
// secret, one for each purpose, so that a signature for one purpose is invalid for another.
package signing
