// Package signing makes and checks what edges of a cluster tell each other about the past of
// their services: answers between edges, and records in etcd. All is authenticated with keys that
// come from the cluster's secret, one for each purpose, so that nothing that is signed for one
// purpose passes for another.
package signing
