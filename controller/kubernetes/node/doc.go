// Package node makes the pods of a Kubernetes node take packets from edges. The agent of a pod runs
// in the pod's network namespace, in the role host: so its program asks the pod's own sockets, and
// counts the pod's own connections.
package node
