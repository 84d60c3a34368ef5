package controller

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/controller/kubernetes/address"
	"sextant/controller/kubernetes/edges"
	"sextant/controller/kubernetes/plan"
)

// gateways is the reconciler of Gateways.
type gateways struct{ *state }

const ofGateway = "gateway/"

// Reconcile does what a Gateway as it is now asks for.
func (r gateways) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	if err := r.begin(ctx); err != nil {
		return reconcile.Result{}, err
	}
	owner := ofGateway + q.String()
	g, err := r.ourGateway(ctx, q.NamespacedName)
	switch {
	case err != nil:
	case g == nil || g.DeletionTimestamp != nil:
		r.forget(owner)
	default:
		err = r.serve(ctx, owner, g)
	}
	return reconcile.Result{}, r.ended(owner, err)
}

// ourGateway reads a Gateway whose class is ours; nil: there is none.
func (s *state) ourGateway(ctx context.Context, n types.NamespacedName) (*gatewayv1.Gateway,
	error) {
	var g gatewayv1.Gateway
	if err := s.Get(ctx, n, &g); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	ours, err := s.ourClass(ctx, string(g.Spec.GatewayClassName))
	if err != nil || !ours {
		return nil, err
	}
	return &g, nil
}

func (s *state) ourClass(ctx context.Context, name string) (bool, error) {
	var c gatewayv1.GatewayClass
	err := s.Get(ctx, types.NamespacedName{Name: name}, &c)
	return err == nil && c.Spec.ControllerName == plan.GatewayController,
		client.IgnoreNotFound(err)
}

// serve gives a Gateway its addresses, and the edges its listeners.
func (r gateways) serve(ctx context.Context, owner string, g *gatewayv1.Gateway) error {
	around, err := r.around(ctx, types.NamespacedName{Namespace: g.Namespace, Name: g.Name})
	if err != nil {
		return err
	}
	p := plan.Gateway(g, around)
	r.using(owner, p.Uses)
	c, refused := claimOfGateway(g)
	var addresses []netip.Addr
	if refused == nil && len(p.Valid()) > 0 {
		var none *address.Refusal
		if addresses, none = r.assign(c); none != nil {
			refused = none
		}
	}
	if refused != nil || len(addresses) == 0 {
		if refused != nil {
			r.say(owner, "address", g, corev1.EventTypeWarning, refused.Reason, refused.Text)
		}
		r.unassign(owner)
		return r.write(ctx, g, p.Status(g, nil, refused, ""))
	}
	r.say(owner, "address", g, "", "", "")
	before := hadAddresses(g, addresses)
	frontends := p.Frontends(r.Prefix, g, around, addresses)
	r.say(owner, "slices", g, corev1.EventTypeWarning, plan.ReasonInvalid,
		strings.Join(p.Wrong, "; "))
	patient := r.patient(owner, !before)
	for i := range frontends {
		frontends[i].Together = patient
	}
	results := r.post(owner, frontends)
	if slices.ContainsFunc(results, func(r plan.Result) bool { return r.Waits }) {
		time.AfterFunc(patience, func() { r.look(owner) })
	}
	states := r.board.States(owner)
	r.meet(owner, before)
	r.sayEdges(owner, g, addresses, states)
	r.sayMissing(owner, g, results)
	served := slices.ContainsFunc(states, func(s edges.State) bool { return s.Serves })
	if !served && !before {
		return r.write(ctx, g, p.Status(g, nil, nil, "no edge serves it yet"))
	}
	return r.write(ctx, g, p.Status(g, addresses, nil, ""))
}

// patience is how long a new Gateway waits for all Services of a route.
const patience = 30 * time.Second

// patient reports whether an owner that is new, or was a moment ago, waits for all its endpoints.
func (s *state) patient(owner string, isNew bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, known := s.since[owner]
	if !known {
		if isNew {
			since = time.Now()
		}
		s.since[owner] = since
	}
	return time.Since(since) < patience
}

// hadAddresses reports whether a Gateway's status has these already: they stay there while no edge
// answers, for what edges have goes on.
func hadAddresses(g *gatewayv1.Gateway, addresses []netip.Addr) bool {
	return slices.Equal(plan.Addresses(g), addresses)
}

func (r gateways) write(ctx context.Context, g *gatewayv1.Gateway,
	s gatewayv1.GatewayStatus) error {
	if reflect.DeepEqual(s, g.Status) {
		return nil
	}
	plan.StampGateway(&s, metav1.Now())
	before := g.DeepCopy()
	g.Status = s
	return r.Status().Patch(ctx, g, client.MergeFromWithOptions(before,
		client.MergeFromWithOptimisticLock{}))
}

// claimOfGateway is what a Gateway claims, and what is wrong with the addresses that it wishes.
func claimOfGateway(g *gatewayv1.Gateway) (c address.Claim, refused *plan.Refusal) {
	key := types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
	c = address.Claim{Owner: ofGateway + key.String(), Namespace: g.Namespace, Labels: g.Labels,
		Pool: g.Annotations[plan.AnnotationPool], Key: g.Annotations[plan.AnnotationSharingKey],
		Held: plan.Addresses(g)}
	c.Wished, refused = plan.WishedOf(g)
	c.V4, c.V6 = plan.FamiliesOf(c.Wished)
	for _, l := range plan.Listeners(g) {
		if l.Unserved == "" {
			c.Ports = append(c.Ports, address.Port{Protocol: strings.ToLower(string(l.Protocol)),
				Number: uint16(l.Port)})
		}
	}
	return c, refused
}

// around reads what the decision on a Gateway looks at.
func (s *state) around(ctx context.Context, gateway types.NamespacedName) (plan.Around, error) {
	a, err := s.neighbours(ctx)
	if err != nil {
		return a, err
	}
	match := client.MatchingFields{byGateway: gateway.String()}
	a.Routes = slices.Concat(s.tcpRoutes(ctx, match), s.udpRoutes(ctx, match))
	return a, nil
}

// tcpRoutes are TCPRoutes, all or those that match. Of a cache, reading them fails only as it ends.
func (s *state) tcpRoutes(ctx context.Context, match ...client.ListOption) (out []*plan.Route) {
	var list gatewayv1.TCPRouteList
	if s.List(ctx, &list, match...) != nil {
		return nil
	}
	for i := range list.Items {
		out = append(out, plan.TCP(&list.Items[i]))
	}
	return out
}

// udpRoutes are UDPRoutes, as tcpRoutes are TCPRoutes.
func (s *state) udpRoutes(ctx context.Context, match ...client.ListOption) (out []*plan.Route) {
	var list gatewayv1.UDPRouteList
	if s.List(ctx, &list, match...) != nil {
		return nil
	}
	for i := range list.Items {
		out = append(out, plan.UDP(&list.Items[i]))
	}
	return out
}

// neighbours are what routes look at.
func (s *state) neighbours(ctx context.Context) (plan.Around, error) {
	a := plan.Around{
		Services: func(n types.NamespacedName) *corev1.Service {
			var one corev1.Service
			if s.Get(ctx, n, &one) != nil { // of a cache, which has it or not
				return nil
			}
			return &one
		},
		Labels: func(name string) labels.Set {
			var one corev1.Namespace
			if s.Get(ctx, types.NamespacedName{Name: name}, &one) != nil {
				return nil
			}
			return one.Labels
		},
		Slices: func(n types.NamespacedName) []*discoveryv1.EndpointSlice {
			list, err := s.slicesOf(ctx, n.Namespace, n.Name)
			if err != nil {
				return nil
			}
			return list
		},
	}
	var grants gatewayv1.ReferenceGrantList
	err := s.List(ctx, &grants, client.UnsafeDisableDeepCopy)
	a.Grants = grants.Items
	return a, err
}

// using notes the Services that an owner's routes name.
func (s *state) using(owner string, services []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, owners := range s.users {
		if delete(owners, owner); len(owners) == 0 {
			delete(s.users, n)
		}
	}
	for _, n := range services {
		if s.users[n] == nil {
			s.users[n] = map[string]bool{}
		}
		s.users[n][owner] = true
	}
}

// usersOf are the objects of the owners whose routes name a Service.
func (s *state) usersOf(service types.NamespacedName) (list []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner := range s.users[service] {
		list = append(list, objectOf(owner))
	}
	return list
}
