// Package kubetest runs a real API server of Kubernetes for tests. Its programs are built by
// "make kube-programs", and kept outside of the tree.
package kubetest
