// Package e2e tests the whole: a real API server, agents, and nodes and pods that are network
// namespaces.
package e2e
