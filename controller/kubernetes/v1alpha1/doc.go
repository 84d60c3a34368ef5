// Package v1alpha1 is what operators and nodes write about Sextant in Kubernetes: pools of virtual
// addresses, edges with their BGP neighbors, and hosts.
//
// +kubebuilder:object:generate=true
// +groupName=sextant.dev
package v1alpha1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=. output:crd:dir=../deploy/chart/crds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the kinds of this package, and the domain of annotations and reasons.
const Group = "sextant.dev"

// Version is the version of the kinds of this package.
var Version = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(Version, &VIPPool{}, &VIPPoolList{}, &Edge{}, &EdgeList{}, &Host{}, &HostList{},
		&BGPPeering{}, &BGPPeeringList{})
	metav1.AddToGroupVersion(s, Version)
	return nil
}
