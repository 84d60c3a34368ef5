package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VIPPool is a set of virtual addresses, which Services get.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=vips
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=".spec.addresses"
// +kubebuilder:printcolumn:name="Auto",type=boolean,JSONPath=".spec.autoAssign"
// +kubebuilder:printcolumn:name="Assigned",type=integer,JSONPath=".status.assigned"
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=".status.free"
type VIPPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VIPPoolSpec   `json:"spec"`
	Status VIPPoolStatus `json:"status,omitempty"`
}

// VIPPoolSpec says which addresses there are, and who may have them.
type VIPPoolSpec struct {
	// Addresses are prefixes like 192.0.2.0/28, ranges like 2001:db8::10-2001:db8::1f, or single
	// addresses. All addresses of a prefix are given, the first and the last too.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=100
	Addresses []string `json:"addresses"`
	// AutoAssign gives addresses to those who name neither this pool nor an address of it.
	//
	// +kubebuilder:default=true
	AutoAssign *bool `json:"autoAssign,omitempty"`
	// Priority orders pools that could serve: the lowest number first.
	//
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Priority int32 `json:"priority,omitempty"`
	// Namespaces may have addresses; all, if there are none.
	//
	// +kubebuilder:validation:MaxItems=256
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector restricts the pool to objects with these labels.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Sharing says who may share an address with the same sharing key: objects of one namespace,
	// of all namespaces, or nobody.
	//
	// +kubebuilder:default=Namespace
	// +kubebuilder:validation:Enum=Namespace;Cluster;None
	Sharing Sharing `json:"sharing,omitempty"`
}

// Sharing says who may share an address.
type Sharing string

// Who may share an address.
const (
	SharingNamespace Sharing = "Namespace"
	SharingCluster   Sharing = "Cluster"
	SharingNone      Sharing = "None"
)

// VIPPoolStatus says what is left.
type VIPPoolStatus struct {
	// Assigned addresses are in use, each counted once.
	Assigned int64 `json:"assigned,omitempty"`
	// Free addresses can be assigned; of prefixes with more, 2^53.
	Free int64 `json:"free,omitempty"`
	// Conditions are Ready: the addresses can be read, and belong to no other pool.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VIPPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type VIPPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VIPPool `json:"items"`
}
