package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sextant/agent/api"
	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// peerings is the reconciler that writes what became of BGPPeerings into their status.
type peerings struct {
	*state
	neighbors *neighbors
}

// specChanged leaves out what a controller writes itself.
var specChanged = builder.WithPredicates(predicate.GenerationChangedPredicate{})

// addBGP adds the controllers of BGP.
func addBGP(m manager.Manager, s *state, d doors) error {
	n := &neighbors{state: s, edges: map[string]edgePeers{}, clients: map[string]keyedClient{},
		peering: func(name string) { d.peerings.add(edgeNamed(name).NamespacedName) }}
	all := func(ctx context.Context, of func(*v1alpha1.Edge) bool) (list []reconcile.Request) {
		var edges v1alpha1.EdgeList
		if s.List(ctx, &edges) != nil {
			return nil // of a cache that ends
		}
		for i := range edges.Items {
			if of(&edges.Items[i]) {
				list = append(list, edgeNamed(edges.Items[i].Name))
			}
		}
		return list
	}
	err := ctrl.NewControllerManagedBy(m).Named("neighbors").For(&v1alpha1.Edge{}, specChanged).
		Watches(&v1alpha1.BGPPeering{}, handler.EnqueueRequestsFromMapFunc(
			// of all edges: one may have been selected before
			func(ctx context.Context, _ client.Object) []reconcile.Request {
				return all(ctx, func(*v1alpha1.Edge) bool { return true })
			}), specChanged).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(
			func(ctx context.Context, o client.Object) []reconcile.Request {
				return all(ctx, func(e *v1alpha1.Edge) bool {
					return o.GetNamespace() == s.Namespace && e.Spec.SecretName == o.GetName()
				})
			})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(n)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).Named("bgppeering").For(&v1alpha1.BGPPeering{}).
		WatchesRawSource(d.peerings.source()).Complete(peerings{s, n})
}

// Reconcile is what reconcile.Reconciler says.
func (r peerings) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.BGPPeering
	if err := r.Get(ctx, q.NamespacedName, &p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var edges v1alpha1.EdgeList
	if err := r.List(ctx, &edges); err != nil {
		return reconcile.Result{}, err
	}
	next := p.DeepCopy()
	said := map[string]edgePeers{}
	for i := range edges.Items {
		name := edges.Items[i].Name
		if found, ok := r.neighbors.of(name); ok && selects(&p, name) {
			said[name] = found
		}
	}
	next.Status.Sessions = sessionsOf(&p, edges.Items, said)
	for _, c := range conditionsOf(&p, edges.Items, said, next.Status.Sessions) {
		meta.SetStatusCondition(&next.Status.Conditions, c)
	}
	if reflect.DeepEqual(p.Status, next.Status) {
		return reconcile.Result{}, nil
	}
	err := r.Status().Patch(ctx, next, client.MergeFrom(&p))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = nil
	}
	return reconcile.Result{}, err
}

// sessionsOf are the sessions of a peering, as its edges said.
func sessionsOf(p *v1alpha1.BGPPeering, edges []v1alpha1.Edge,
	said map[string]edgePeers) (list []v1alpha1.BGPSession) {
	for i := range edges {
		edge := edges[i].Name
		if !selects(p, edge) {
			continue
		}
		for _, n := range p.Spec.Neighbors {
			one := v1alpha1.BGPSession{Edge: edge, Address: n.Address, State: "unknown"}
			address, err := netip.ParseAddr(n.Address)
			j := slices.IndexFunc(said[edge].peers, func(b api.BGPPeer) bool {
				return err == nil && b.Address == address
			})
			if j >= 0 && said[edge].refusals[p.Name] == "" {
				one.State = said[edge].peers[j].State
				one.Reason = plan.Message(said[edge].peers[j].Reason)
			}
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b v1alpha1.BGPSession) int {
		return cmp.Or(strings.Compare(a.Edge, b.Edge), strings.Compare(a.Address, b.Address))
	})
	return list
}

const established = "established"

// conditionsOf are the conditions of a peering.
func conditionsOf(p *v1alpha1.BGPPeering, edges []v1alpha1.Edge, said map[string]edgePeers,
	sessions []v1alpha1.BGPSession) []metav1.Condition {
	accepted := metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted",
		Message: "the edges have these neighbors", ObservedGeneration: p.Generation}
	var troubles []string
	chosen := 0
	for i := range edges {
		name := edges[i].Name
		if !selects(p, name) {
			continue
		}
		chosen++
		found, ok := said[name]
		switch {
		case !ok:
			troubles = append(troubles, name+": it was not asked yet")
		case found.refusals[p.Name] != "":
			troubles = append(troubles, name+": "+found.refusals[p.Name])
			accepted.Reason = "Refused"
		case found.trouble != "":
			troubles = append(troubles, name+": "+found.trouble)
		}
	}
	for _, name := range p.Spec.Edges {
		if !slices.ContainsFunc(edges, func(e v1alpha1.Edge) bool { return e.Name == name }) {
			troubles = append(troubles, "there is no Edge "+name)
			accepted.Reason = "Refused"
		}
	}
	if chosen == 0 && len(troubles) == 0 {
		troubles = append(troubles, "there is no Edge: make one for each that speaks BGP")
	}
	if len(troubles) > 0 {
		accepted.Status, accepted.Message = metav1.ConditionFalse,
			plan.Message(strings.Join(troubles, "; "))
		if accepted.Reason == "Accepted" {
			accepted.Reason = "Pending"
		}
	}
	up := metav1.Condition{Type: "Established", Status: metav1.ConditionTrue,
		Reason: "Established", ObservedGeneration: p.Generation,
		Message: "all sessions are established"}
	var lost []string
	for _, s := range sessions {
		if s.State != established {
			lost = append(lost, fmt.Sprintf("%s with %s: %s", s.Edge, s.Address,
				strings.TrimSuffix(s.State+", "+s.Reason, ", ")))
		}
	}
	if len(lost) > 0 || len(sessions) == 0 {
		up.Status, up.Reason = metav1.ConditionFalse, "Down"
		up.Message = plan.Message(cmp.Or(strings.Join(lost, "; "), "there is no session"))
	}
	return []metav1.Condition{accepted, up}
}
