package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"sextant/controller/kubernetes/v1alpha1"
)

// nodeHandler has those be looked at whose pods are on a node that is excluded now, or no longer.
func nodeHandler(s *state, d doors) handler.EventHandler {
	note := func(o client.Object, there bool) {
		for owner := range s.ownersOf(s.hosts.exclude(o.GetName(), there && isExcluded(o))) {
			d.owner(owner)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { note(e.Object, true) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			note(e.ObjectNew, true)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { note(e.Object, false) },
	}
}

// isExcluded reports whether a Node gets no new connections from outside the cluster.
func isExcluded(node client.Object) bool {
	_, ok := node.GetLabels()[corev1.LabelNodeExcludeBalancers]
	return ok
}

// readHosts reads what nodes say of their pods, and which are excluded.
func (s *state) readHosts(ctx context.Context) error {
	var hosts v1alpha1.HostList
	if err := s.List(ctx, &hosts); err != nil {
		return fmt.Errorf("list Hosts: %w", err)
	}
	for i := range hosts.Items {
		s.hosts.set(hosts.Items[i].Name, &hosts.Items[i].Status)
	}
	var nodes metav1.PartialObjectMetadataList
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := s.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	for i := range nodes.Items {
		s.hosts.exclude(nodes.Items[i].Name, isExcluded(&nodes.Items[i]))
	}
	return nil
}
