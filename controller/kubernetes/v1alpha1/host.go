package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Host is what a node says of its pods: which of them take packets from edges, and at which
// segment identifiers. It has the node's name, and the node writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Locator",type=string,JSONPath=".status.locator"
type Host struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status HostStatus `json:"status,omitempty"`
}

// HostStatus is what takes packets now.
type HostStatus struct {
	// Locator is the prefix of the node's segment identifiers.
	Locator string `json:"locator,omitempty"`
	// Boot is the node's boot in which this was written. What takes packets does so until the next
	// one, whether or not a daemon runs.
	Boot string `json:"boot,omitempty"`
	// Endpoints take packets.
	//
	// +listType=map
	// +listMapKey=address
	Endpoints []HostEndpoint `json:"endpoints,omitempty"`
	// Problems are why pods do not take packets, or not of all services.
	//
	// +listType=map
	// +listMapKey=address
	Problems []HostProblem `json:"problems,omitempty"`
}

// HostProblem is why a pod's address takes no packets of services.
type HostProblem struct {
	// Address is the pod's, as EndpointSlices have it.
	Address string `json:"address"`
	// Services are the endpoints that it should take packets for.
	Services []string `json:"services,omitempty"`
	// Why it does not.
	Why string `json:"why"`
}

// HostEndpoint is a pod's address whose sockets take packets.
type HostEndpoint struct {
	// Address is the pod's, as EndpointSlices have it.
	Address string `json:"address"`
	// SID is where packets for it are sent.
	SID string `json:"sid"`
	// Serves are the endpoints of services that the pod is ready to take packets for, like
	// [2001:db8:80::80]:443/tcp.
	Serves []string `json:"serves,omitempty"`
}

// HostList is a list of hosts.
//
// +kubebuilder:object:root=true
type HostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Host `json:"items"`
}
