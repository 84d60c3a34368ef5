package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Edge is a Sextant agent in the role edge, and how its API is reached.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=".spec.address"
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=".spec.zone"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[0].status"
// +kubebuilder:printcolumn:name="Services",type=integer,JSONPath=".status.services"
type Edge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EdgeSpec   `json:"spec"`
	Status EdgeStatus `json:"status,omitempty"`
}

// EdgeSpec says where an edge is.
type EdgeSpec struct {
	// Address is api.listen.address of the agent, as HOST:PORT that its certificate names.
	//
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=300
	Address string `json:"address"`
	// SecretName names a Secret in the controller's namespace: "token" is a token of the role
	// admin, "ca.crt" the certificates that the agent's is checked against, and "tls.crt" and
	// "tls.key", which may be missing, the controller's own.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
	// Zone is where the edge is. Services with the traffic distribution PreferSameZone get their
	// new connections from endpoints there.
	//
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`
}

// EdgeStatus says how far the edge is.
type EdgeStatus struct {
	// Services is how many services the edge has of this cluster.
	Services int32 `json:"services,omitempty"`
	// Conditions are Ready: the edge has all services as they are wanted.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EdgeList is a list of edges.
//
// +kubebuilder:object:root=true
type EdgeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Edge `json:"items"`
}
