package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BGPPeering is sessions of edges with routers, which learn virtual addresses by them. The edges'
// node files say what all sessions of an edge share: bgp.asn and bgp.routerID.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=".status.conditions[0].status"
// +kubebuilder:printcolumn:name="Established",type=string,JSONPath=".status.conditions[1].status"
type BGPPeering struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BGPPeeringSpec   `json:"spec"`
	Status BGPPeeringStatus `json:"status,omitempty"`
}

// BGPPeeringSpec says which edges speak to whom.
type BGPPeeringSpec struct {
	// Edges are names of Edges that have these neighbors; all, if there are none.
	//
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	Edges []string `json:"edges,omitempty"`
	// Neighbors are the routers.
	//
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Neighbors []BGPNeighbor `json:"neighbors"`
}

// BGPNeighbor is a router.
type BGPNeighbor struct {
	// Address is the router's.
	//
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address"`
	// ASN is the number of the router's autonomous system.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	ASN int64 `json:"asn"`
	// Port is where the router listens.
	//
	// +kubebuilder:default=179
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// Local is the edge's address that the session uses, for a peering of one edge; the kernel
	// chooses, if it is left out.
	//
	// +kubebuilder:validation:MaxLength=45
	Local string `json:"local,omitempty"`
	// PasswordFile is the path of a file on the edge with the key of TCP MD5 (RFC 2385).
	//
	// +kubebuilder:validation:MaxLength=4096
	PasswordFile string `json:"passwordFile,omitempty"`
	// Passive edges wait for the router to connect.
	Passive bool `json:"passive,omitempty"`
	// Families are the kinds of routes that are exchanged. Virtual addresses are unicast.
	//
	// +kubebuilder:default={"ipv4-unicast","ipv6-unicast"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Enum=ipv4-unicast;ipv6-unicast;vpnv4;vpnv6;link-state
	Families []string `json:"families,omitempty"`
	// HoldTimeSeconds is how long a session lasts without a message (RFC 4271 section 4.2).
	//
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=65535
	HoldTimeSeconds int32 `json:"holdTimeSeconds,omitempty"`
	// Multihop is the hop limit of a session with a router of another autonomous system that is
	// not on the same link; 0: it is.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	Multihop int32 `json:"multihop,omitempty"`
	// BFD detects a lost router fast (RFC 5880); without it, HoldTimeSeconds does.
	BFD *BFD `json:"bfd,omitempty"`
}

// BFD says when a neighbor is lost.
type BFD struct {
	// IntervalMilliseconds is the time between packets, in both directions.
	//
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=10000
	IntervalMilliseconds int32 `json:"intervalMilliseconds,omitempty"`
	// Multiplier is how many packets are missed until the neighbor is lost.
	//
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=255
	Multiplier int32 `json:"multiplier,omitempty"`
}

// BGPPeeringStatus says what became of it.
type BGPPeeringStatus struct {
	// Sessions are those of the edges, as they were seen last.
	//
	// +listType=map
	// +listMapKey=edge
	// +listMapKey=address
	Sessions []BGPSession `json:"sessions,omitempty"`
	// Conditions are Accepted: the edges have these neighbors, and Established: all sessions are.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BGPSession is one of an edge with a router.
type BGPSession struct {
	// Edge is the name of the Edge.
	Edge string `json:"edge"`
	// Address is the router's.
	Address string `json:"address"`
	// State is that of RFC 4271 section 8.2.2, in lower case; unknown, if the edge has not said it.
	State string `json:"state"`
	// Reason is why the session was lost.
	Reason string `json:"reason,omitempty"`
}

// BGPPeeringList is a list of peerings.
//
// +kubebuilder:object:root=true
type BGPPeeringList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BGPPeering `json:"items"`
}
