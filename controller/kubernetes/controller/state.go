package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/controller/kubernetes/address"
	"sextant/controller/kubernetes/edges"
	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// Config says what a controller is for.
type Config struct {
	Class        string // loadBalancerClass of Services
	DefaultClass bool   // Services without a class, too
	Prefix       string // of this cluster's services at the edges
	Namespace    string // of this controller, where the Secrets of edges are
	GatewayAPI   bool   // the cluster has the kinds of the Gateway API
}

// state is what the reconcilers share.
type state struct {
	Config
	client.Client
	*voice
	board *edges.Board
	hosts *hosts
	look  func(owner string) // has an owner be looked at

	mu      sync.Mutex // guards what follows
	book    *address.Book
	pools   []*address.Pool
	begun   bool
	pending map[string]bool   // owners who were not looked at since the start
	serves  map[string]string // owner of an endpoint
	held    map[string][]string
	users   map[types.NamespacedName]map[string]bool // owners whose routes name a Service
	since   map[string]time.Time                     // when a Gateway was new
}

// forget ends what is known of an owner that is gone.
func (s *state) forget(owner string) {
	s.board.Post(owner, nil)
	s.using(owner, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.Release(owner)
	for _, e := range s.held[owner] {
		if s.serves[e] == owner {
			delete(s.serves, e)
		}
	}
	delete(s.held, owner)
	delete(s.since, owner)
	s.hush(owner)
}

// post plans frontends and hands them to the edges.
func (s *state) post(owner string, frontends []plan.Frontend) []plan.Result {
	results := make([]plan.Result, len(frontends))
	names := make([]string, len(frontends))
	for i, f := range frontends {
		names[i] = f.Endpoint.String()
	}
	s.mu.Lock()
	for _, e := range s.held[owner] {
		if s.serves[e] == owner {
			delete(s.serves, e)
		}
	}
	for _, e := range names {
		s.serves[e] = owner
	}
	s.held[owner] = names
	s.mu.Unlock()
	for i, f := range frontends {
		results[i] = f.Build(s.hosts.where)
	}
	s.board.Post(owner, results)
	return results
}

// ownersOf are those of endpoints.
func (s *state) ownersOf(endpoints map[string]bool) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := map[string]bool{}
	for e := range endpoints {
		if owner, ok := s.serves[e]; ok {
			owners[owner] = true
		}
	}
	return owners
}

// ended notes how it went with an owner: after all that there were at the start have been dealt
// with, edges are told.
func (s *state) ended(owner string, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // it comes again as it is now
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	last := s.begun && len(s.pending) == 1 && s.pending[owner]
	delete(s.pending, owner)
	s.mu.Unlock()
	if last {
		s.board.Whole()
	}
	return nil
}

// begin reads what there is before anything is assigned: addresses that are in use stay so.
func (s *state) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return nil
	}
	if err := s.readPools(ctx); err != nil {
		return err
	}
	// A backend that is left out even once is new when it comes again, and of one that drains the
	// connections are lost.
	if err := s.readHosts(ctx); err != nil {
		return err
	}
	claims, err := s.claims(ctx)
	if err != nil {
		return err
	}
	for _, c := range claims {
		s.pending[c.Owner] = true
		if len(c.Held) > 0 {
			// Who can't keep what it had is told when its turn comes.
			_, _ = s.book.Assign(c)
		}
	}
	s.begun = true
	if len(s.pending) == 0 {
		s.board.Whole()
	}
	return nil
}

// claims are those of all objects that there are, the oldest first.
func (s *state) claims(ctx context.Context) ([]address.Claim, error) {
	type aged struct {
		address.Claim
		born metav1.Time
	}
	var list []aged
	var services corev1.ServiceList
	if err := s.List(ctx, &services); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	for i := range services.Items {
		one := &services.Items[i]
		if plan.Ours(one, s.Class, s.DefaultClass) && one.DeletionTimestamp == nil {
			c, _ := claimOf(one) // a wrong wish is told when the Service's turn comes
			list = append(list, aged{c, one.CreationTimestamp})
		}
	}
	if s.GatewayAPI {
		var gateways gatewayv1.GatewayList
		if err := s.List(ctx, &gateways); err != nil {
			return nil, fmt.Errorf("list Gateways: %w", err)
		}
		for i := range gateways.Items {
			one := &gateways.Items[i]
			ours, err := s.ourClass(ctx, string(one.Spec.GatewayClassName))
			if err != nil {
				return nil, fmt.Errorf("read GatewayClass: %w", err)
			}
			if ours && one.DeletionTimestamp == nil {
				c, _ := claimOfGateway(one)
				list = append(list, aged{c, one.CreationTimestamp})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b aged) int {
		return cmp.Or(a.born.Compare(b.born.Time), cmp.Compare(a.Owner, b.Owner))
	})
	claims := make([]address.Claim, len(list))
	for i, a := range list {
		claims[i] = a.Claim
	}
	return claims, nil
}

// readPools reads the pools. The caller has the lock.
func (s *state) readPools(ctx context.Context) error {
	var list v1alpha1.VIPPoolList
	if err := s.List(ctx, &list); err != nil {
		return fmt.Errorf("list VIPPools: %w", err)
	}
	s.pools = nil
	slices.SortFunc(list.Items, func(a, b v1alpha1.VIPPool) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	for i := range list.Items {
		if p, err := poolOf(&list.Items[i]); err == nil && p.Overlap(s.pools) == "" {
			s.pools = append(s.pools, p)
		}
	}
	s.book.SetPools(s.pools)
	return nil
}

// poolOf reads a pool.
func poolOf(v *v1alpha1.VIPPool) (*address.Pool, error) {
	p := &address.Pool{Name: v.Name, Auto: v.Spec.AutoAssign == nil || *v.Spec.AutoAssign,
		Priority: int(v.Spec.Priority), Namespaces: v.Spec.Namespaces,
		Sharing: map[v1alpha1.Sharing]address.Sharing{v1alpha1.SharingCluster: address.WithAll,
			v1alpha1.SharingNone: address.WithNobody}[v.Spec.Sharing]}
	for _, text := range v.Spec.Addresses {
		r, err := address.ParseRange(text)
		if err != nil {
			return nil, err
		}
		p.Ranges = append(p.Ranges, r)
	}
	if v.Spec.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(v.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("selector: %w", err)
		}
		p.Selector = selector
	}
	return p, nil
}

// assign gives an owner addresses.
func (s *state) assign(c address.Claim) ([]netip.Addr, *address.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.Assign(c)
}

// unassign takes an owner's addresses back, and its services from the edges.
func (s *state) unassign(owner string) {
	s.board.Post(owner, nil)
	s.mu.Lock()
	s.book.Release(owner)
	s.mu.Unlock()
}
