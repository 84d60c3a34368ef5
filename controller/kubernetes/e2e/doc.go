// Package e2e tests the whole: a real API server, agents, and nodes and pods that are network
// namespaces. The programs of Kubernetes are built by "make kube-programs", and kept outside of the
// tree.
package e2e
