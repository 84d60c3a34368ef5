package controller

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sextant/controller/kubernetes/address"
	"sextant/controller/kubernetes/edges"
	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// finalizer keeps an object until it is taken from the edges. It is our own: others, who serve
// other classes, have the common one of Services.
const finalizer = v1alpha1.Group + "/load-balancer"

// services is the reconciler of Services.
type services struct{ *state }

const ofService = "service/"

// Reconcile does what a Service as it is now asks for.
func (r services) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	if err := r.begin(ctx); err != nil {
		return reconcile.Result{}, err
	}
	owner := ofService + q.String()
	var s corev1.Service
	err := r.Get(ctx, q.NamespacedName, &s)
	switch {
	case apierrors.IsNotFound(err):
		r.forget(owner)
		err = nil
	case err != nil:
	case s.DeletionTimestamp != nil || !plan.Ours(&s, r.Class, r.DefaultClass):
		err = r.release(ctx, owner, &s)
	default:
		err = r.serve(ctx, owner, &s)
	}
	return reconcile.Result{}, r.ended(owner, err)
}

// release takes a Service that was ours from the edges.
func (r services) release(ctx context.Context, owner string, s *corev1.Service) error {
	r.forget(owner)
	if !controllerutil.ContainsFinalizer(s, finalizer) {
		return nil
	}
	if s.DeletionTimestamp == nil && len(s.Status.LoadBalancer.Ingress) > 0 {
		if err := r.setIngress(ctx, s, nil); err != nil {
			return err
		}
	}
	before := s.DeepCopy()
	controllerutil.RemoveFinalizer(s, finalizer)
	return r.Patch(ctx, s, client.StrategicMergeFrom(before)) // other finalizers stay
}

// serve gives a Service its addresses, and the edges its endpoints.
func (r services) serve(ctx context.Context, owner string, s *corev1.Service) error {
	told, refused := plan.Admit(s)
	_, wrong := plan.OptionsOf(s.Annotations)
	r.sayAll(owner, "told", s, append(told, wrong...))
	c, wrongWish := claimOf(s)
	if refused == nil {
		refused = wrongWish
	}
	if refused != nil {
		r.say(owner, "admit", s, corev1.EventTypeWarning, refused.Reason, refused.Text)
		return r.unserved(ctx, owner, s)
	}
	r.say(owner, "admit", s, "", "", "")
	addresses, none := r.assign(c)
	if none != nil {
		r.say(owner, "address", s, corev1.EventTypeWarning, none.Reason, none.Text)
		return r.unserved(ctx, owner, s)
	}
	r.say(owner, "address", s, "", "", "")
	before := had(s, addresses)
	list, err := r.slicesOf(ctx, s.Namespace, s.Name)
	if err != nil {
		return err
	}
	frontends, faults := plan.Service(r.Prefix, s, list, addresses)
	r.say(owner, "slices", s, corev1.EventTypeWarning, plan.ReasonInvalid,
		strings.Join(faults, "; "))
	results := r.post(owner, frontends)
	states := r.board.States(owner)
	r.meet(owner, before)
	r.sayEdges(owner, s, addresses, states)
	served := slices.ContainsFunc(states, func(s edges.State) bool { return s.Serves })
	r.sayMissing(owner, s, results)
	return r.setIngress(ctx, s, plan.Ingress(s, addresses, results, served || before))
}

// had reports whether a Service has its addresses in its status already: they stay there while no
// edge answers, for what edges have goes on.
func had(s *corev1.Service, addresses []netip.Addr) bool {
	if len(s.Status.LoadBalancer.Ingress) != len(addresses) {
		return false
	}
	for i, in := range s.Status.LoadBalancer.Ingress {
		if in.IP != addresses[i].String() {
			return false
		}
	}
	return true
}

func (r services) unserved(ctx context.Context, owner string, s *corev1.Service) error {
	r.unassign(owner)
	return r.setIngress(ctx, s, nil)
}

// setIngress writes a Service's addresses, and with the first ones its finalizer, in one write:
// Services are many. It needs none before, for what edges have of Services that are gone is taken
// from them whenever a controller starts.
func (r services) setIngress(ctx context.Context, s *corev1.Service,
	list []corev1.LoadBalancerIngress) error {
	added := len(list) > 0 && controllerutil.AddFinalizer(s, finalizer)
	if !added && (len(list) == 0 && len(s.Status.LoadBalancer.Ingress) == 0 ||
		reflect.DeepEqual(list, s.Status.LoadBalancer.Ingress)) {
		return nil
	}
	s.Status.LoadBalancer.Ingress = list
	if err := r.Status().Update(ctx, s); err != nil {
		return err
	}
	if !added || !controllerutil.AddFinalizer(s, finalizer) {
		return nil
	}
	// An API server that takes nothing but the status from a change of it.
	before := s.DeepCopy()
	controllerutil.RemoveFinalizer(before, finalizer)
	return r.Patch(ctx, s, client.StrategicMergeFrom(before))
}

// sayAll tells what is ignored.
func (s *state) sayAll(owner, subject string, on client.Object, list []plan.Refusal) {
	var texts []string
	reason := plan.ReasonIgnored
	for _, one := range list {
		texts, reason = append(texts, one.Text), one.Reason
	}
	s.say(owner, subject, on, corev1.EventTypeWarning, reason, strings.Join(texts, "; "))
}

// sayEdges tells which edges serve which addresses, once all do, and what others say against it.
func (s *state) sayEdges(owner string, on client.Object, addresses []netip.Addr,
	states []edges.State) {
	if len(states) == 0 {
		s.say(owner, "edges", on, corev1.EventTypeWarning, "NoEdge",
			"no edge serves "+texts(addresses)+": there is no Edge object")
		return
	}
	var serving, troubles []string
	for _, e := range states {
		if e.Serves {
			serving = append(serving, e.Edge)
		}
		if e.Trouble != "" {
			troubles = append(troubles, e.Edge+": "+e.Trouble)
		}
	}
	switch {
	case len(troubles) > 0:
		s.say(owner, "edges", on, corev1.EventTypeWarning, "EdgeRefuses",
			texts(addresses)+": "+strings.Join(troubles, "; "))
	case len(serving) == len(states):
		s.sayNews(owner, "edges", on, "Announced",
			texts(addresses)+" served by "+strings.Join(serving, ", "))
	}
}

// sayMissing tells of endpoints that get nothing, if none gets anything, and of excluded nodes.
func (s *state) sayMissing(owner string, on client.Object, results []plan.Result) {
	var none, excluded string
	for _, r := range results {
		for _, m := range r.Missing {
			switch {
			case m.Excluded && excluded == "":
				excluded = m.Why
			case !m.Excluded && none == "" && r.Serving == 0:
				none = fmt.Sprintf("port %d has no endpoint: %s: %s", r.At.Port, m.Name, m.Why)
			}
		}
	}
	s.say(owner, "excluded", on, corev1.EventTypeNormal, "NodeExcluded", excluded)
	if !strings.Contains(none, " yet") { // else it is on its way
		s.say(owner, "pods", on, corev1.EventTypeWarning, plan.ReasonNoTarget, none)
	}
}

// slicesOf are the EndpointSlices of a Service, which the caller does not change.
func (s *state) slicesOf(ctx context.Context, namespace,
	name string) (out []*discoveryv1.EndpointSlice, err error) {
	var list discoveryv1.EndpointSliceList
	err = s.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{byService: name},
		client.UnsafeDisableDeepCopy)
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, err
}

func texts(addresses []netip.Addr) string {
	var list []string
	for _, a := range addresses {
		list = append(list, a.String())
	}
	return strings.Join(list, ", ")
}

// claimOf is what a Service claims, and what is wrong with the addresses that it wishes.
func claimOf(s *corev1.Service) (c address.Claim, refused *plan.Refusal) {
	key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	c = address.Claim{Owner: ofService + key.String(), Namespace: s.Namespace, Labels: s.Labels,
		Pool: s.Annotations[plan.AnnotationPool], Key: s.Annotations[plan.AnnotationSharingKey],
		Require: s.Spec.IPFamilyPolicy != nil &&
			*s.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack}
	c.Wished, refused = plan.Wished(s.Annotations)
	for _, f := range plan.Families(s) {
		c.V4 = c.V4 || f == corev1.IPv4Protocol
		c.V6 = c.V6 || f == corev1.IPv6Protocol
	}
	for _, p := range s.Spec.Ports {
		if protocol, ok := plan.ProtocolOf(p.Protocol); ok {
			c.Ports = append(c.Ports, address.Port{Protocol: string(protocol),
				Number: uint16(p.Port)})
		}
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil {
			c.Held = append(c.Held, a)
		}
	}
	return c, refused
}
