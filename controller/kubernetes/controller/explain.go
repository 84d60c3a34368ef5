package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/config"
	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// A Report says of a Service who announces it, who serves it, and why not.
type Report struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Addresses []string      `json:"addresses"`
	Problems  []string      `json:"problems"` // why it is not served, or not as it asks for
	Ports     []PortReport  `json:"ports"`
	Edges     []EdgeReport  `json:"edges"`
	Events    []EventReport `json:"events"` // the latest of each reason, the newest first
}

// A PortReport is a port at an address.
type PortReport struct {
	Endpoint  string           `json:"endpoint"`
	Serving   int              `json:"serving"` // pods that get new connections
	Leaving   int              `json:"leaving"` // pods that only keep theirs
	Endpoints []EndpointReport `json:"endpoints"`
}

// An EndpointReport is a pod of a port.
type EndpointReport struct {
	Name  string `json:"name"`
	Node  string `json:"node"`
	SID   string `json:"sid"`   // where it takes packets; "": nowhere
	State string `json:"state"` // up, draining or missing
	Why   string `json:"why"`   // it is not up
}

// An EdgeReport is an edge.
type EdgeReport struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Ready    bool   `json:"ready"`
	Services int32  `json:"services"` // that it has of the cluster
	// of BGPPeerings, and how many of them are established
	Sessions    int    `json:"sessions"`
	Established int    `json:"established"`
	Why         string `json:"why"` // it is not ready, or a session not established
}

// An EventReport is what the controller said of the Service.
type EventReport struct {
	Reason string `json:"reason"`
	Note   string `json:"note"`
}

// Explain makes the report of a Service from objects of the cluster as they are.
func Explain(ctx context.Context, c client.Client, config Config,
	key types.NamespacedName) (*Report, error) {
	var s corev1.Service
	if err := c.Get(ctx, key, &s); err != nil {
		return nil, err
	}
	r := &Report{Namespace: s.Namespace, Name: s.Name, Addresses: []string{}, Ports: []PortReport{},
		Problems: problemsOf(&s, config), Edges: []EdgeReport{}, Events: []EventReport{}}
	var addresses []netip.Addr
	for _, in := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil {
			addresses, r.Addresses = append(addresses, a), append(r.Addresses, in.IP)
		}
	}
	if len(addresses) == 0 && len(r.Problems) == 0 {
		r.Problems = append(r.Problems, "it has no address: no edge serves it, or no pool has "+
			"one; see the events")
	}
	state := &state{Config: config, Client: c, hosts: newHosts()}
	if err := state.readHosts(ctx); err != nil {
		return nil, err
	}
	if err := r.explainPorts(ctx, state, &s, addresses); err != nil {
		return nil, err
	}
	if err := r.explainEdges(ctx, c); err != nil {
		return nil, err
	}
	return r, r.readEvents(ctx, c, &s)
}

// problemsOf are why a Service is not served, or not as it asks for.
func problemsOf(s *corev1.Service, config Config) []string {
	problems := []string{}
	switch {
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return append(problems, fmt.Sprintf("it is of type %s: write LoadBalancer", s.Spec.Type))
	case !plan.Ours(s, config.Class, config.DefaultClass):
		class := "none"
		if s.Spec.LoadBalancerClass != nil {
			class = *s.Spec.LoadBalancerClass
		}
		return append(problems, fmt.Sprintf("its loadBalancerClass is %s, and %s is served: it "+
			"can't be changed; make the Service anew", class, config.Class))
	}
	told, refused := plan.Admit(s)
	_, wrong := plan.OptionsOf(s.Annotations)
	_, wish := claimOf(s)
	for _, one := range []*plan.Refusal{refused, wish} {
		if one != nil {
			problems = append(problems, one.Text)
		}
	}
	for _, one := range slices.Concat(told, wrong) {
		problems = append(problems, one.Text)
	}
	return problems
}

func (r *Report) explainPorts(ctx context.Context, state *state, s *corev1.Service,
	addresses []netip.Addr) error {
	var list discoveryv1.EndpointSliceList
	err := state.List(ctx, &list, client.InNamespace(s.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: s.Name})
	if err != nil {
		return err
	}
	var slicesOf []*discoveryv1.EndpointSlice
	for i := range list.Items {
		slicesOf = append(slicesOf, &list.Items[i])
	}
	frontends, faults := plan.Service(state.Prefix, s, slicesOf, addresses)
	r.Problems = append(r.Problems, faults...)
	for _, f := range frontends {
		r.Ports = append(r.Ports, explainPort(f, f.Build(state.hosts.where)))
	}
	return nil
}

func explainPort(f plan.Frontend, result plan.Result) PortReport {
	p := PortReport{Endpoint: f.Endpoint.String(), Serving: result.Serving, Leaving: result.Leaving,
		Endpoints: []EndpointReport{}}
	nodes := map[string]string{}
	for _, g := range f.Groups {
		for _, e := range g.Endpoints {
			nodes[e.Name] = e.Node
		}
	}
	why := map[string]string{}
	for _, m := range result.Missing {
		why[m.Name] = m.Why
		if !m.Excluded {
			p.Endpoints = append(p.Endpoints, EndpointReport{m.Name, m.Node, "", "missing", m.Why})
		}
	}
	for _, b := range result.For("").Backends {
		e := EndpointReport{b.Name, nodes[b.Name], b.SID.String(), string(*b.State), why[b.Name]}
		if *b.State == config.Draining && e.Why == "" {
			e.Why = "it terminates, is not ready, or its weight is 0"
		}
		p.Endpoints = append(p.Endpoints, e)
	}
	slices.SortFunc(p.Endpoints, func(a, b EndpointReport) int {
		return cmp.Compare(a.Name, b.Name)
	})
	return p
}

func (r *Report) explainEdges(ctx context.Context, c client.Client) error {
	var list v1alpha1.EdgeList
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	var peerings v1alpha1.BGPPeeringList
	if err := c.List(ctx, &peerings); err != nil {
		return err
	}
	for _, e := range list.Items {
		one := EdgeReport{Name: e.Name, Address: e.Spec.Address, Services: e.Status.Services,
			Why: "the controller has not said anything of it yet"}
		if ready := meta.FindStatusCondition(e.Status.Conditions, "Ready"); ready != nil {
			if one.Ready = ready.Status == "True"; one.Ready {
				one.Why = ""
			} else {
				one.Why = ready.Message
			}
		}
		for i := range peerings.Items {
			one.explainSessions(&peerings.Items[i])
		}
		r.Edges = append(r.Edges, one)
	}
	if len(r.Edges) == 0 {
		r.Problems = append(r.Problems, "there is no Edge: make one for each that announces")
	}
	return nil
}

// explainSessions counts an edge's sessions of a peering.
func (r *EdgeReport) explainSessions(p *v1alpha1.BGPPeering) {
	for _, s := range p.Status.Sessions {
		if s.Edge != r.Name {
			continue
		}
		r.Sessions++
		if s.State == established {
			r.Established++
		} else if r.Why == "" {
			r.Why = fmt.Sprintf("BGP with %s is %s: see kubectl describe bgppeering %s", s.Address,
				s.State, p.Name)
		}
	}
}

// readEvents reads the latest event of each reason.
func (r *Report) readEvents(ctx context.Context, c client.Client, s *corev1.Service) error {
	var list eventsv1.EventList
	if err := c.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int {
		return timeOf(&b).Compare(timeOf(&a))
	})
	for i := range list.Items {
		e := &list.Items[i]
		told := slices.ContainsFunc(r.Events, func(o EventReport) bool {
			return o.Reason == e.Reason
		})
		if told || e.Regarding.UID != s.UID || !strings.HasPrefix(e.ReportingController, recorder) {
			continue
		}
		r.Events = append(r.Events, EventReport{e.Reason, e.Note})
	}
	return nil
}

func timeOf(e *eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
}
