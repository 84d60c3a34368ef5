package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sextant/agent/api"
	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// neighbors is the reconciler that keeps the BGP neighbors of edges equal to what BGPPeerings say.
// All of a cluster have names with its prefix: so those of a peering that is gone are known, and
// those of others left alone.
type neighbors struct {
	*state
	peering func(name string) // has a BGPPeering be looked at

	mu      sync.Mutex
	edges   map[string]edgePeers
	clients map[string]keyedClient // of edges
}

// keyedClient is a client, and what it was made of: connections stay.
type keyedClient struct {
	edgeKey
	*api.Client
}

// edgePeers is what an edge last said of its BGP neighbors.
type edgePeers struct {
	trouble  string            // why it has said nothing
	refusals map[string]string // of BGPPeerings
	peers    []api.BGPPeer
}

const (
	// sessionsEvery is how often an edge with neighbors is asked for its sessions.
	sessionsEvery = 5 * time.Second
	// sessionsPatience is how long an edge may take, which may be busy with many services.
	sessionsPatience = 30 * time.Second
)

const neighborsPath = "/v1/bgp/neighbors"

// Reconcile is what reconcile.Reconciler says, of an Edge.
func (r *neighbors) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	peerings, err := r.peeringsOf(ctx, q.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	var e v1alpha1.Edge
	if err := r.Get(ctx, q.NamespacedName, &e); apierrors.IsNotFound(err) {
		r.note(q.Name, nil, peerings)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	key, agent, err := r.remote(ctx, &e)
	if err != nil {
		return reconcile.Result{}, err
	}
	if agent == nil {
		r.note(e.Name, &edgePeers{trouble: key.fault}, peerings)
		return reconcile.Result{}, nil // its Secret will come
	}
	agent = r.keep(e.Name, key, agent)
	ctx, cancel := context.WithTimeout(ctx, sessionsPatience)
	defer cancel()
	found, clean, err := r.converge(ctx, agent, peerings)
	if err != nil {
		found.trouble = err.Error()
	}
	r.note(e.Name, &found, peerings)
	if clean && len(peerings) == 0 {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: sessionsEvery}, nil
}

// keep returns the client that an edge has already, if it is made of the same.
func (r *neighbors) keep(edge string, key edgeKey, made *api.Client) *api.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clients[edge].Client == nil || r.clients[edge].edgeKey != key {
		r.clients[edge] = keyedClient{key, made}
	}
	return r.clients[edge].Client
}

// peeringsOf are those of an edge, the oldest first.
func (r *neighbors) peeringsOf(ctx context.Context, edge string) ([]v1alpha1.BGPPeering, error) {
	var list v1alpha1.BGPPeeringList
	if err := r.List(ctx, &list); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.BGPPeering) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return slices.DeleteFunc(list.Items, func(p v1alpha1.BGPPeering) bool {
		return p.DeletionTimestamp != nil || !selects(&p, edge)
	}), nil
}

func selects(p *v1alpha1.BGPPeering, edge string) bool {
	return len(p.Spec.Edges) == 0 || slices.Contains(p.Spec.Edges, edge)
}

// converge makes an agent's neighbors those of the peerings, each of which is refused alone, and
// asks for its sessions. While one can't be read, no neighbor goes. Clean: none is left to go.
func (r *neighbors) converge(ctx context.Context, agent *api.Client,
	peerings []v1alpha1.BGPPeering) (found edgePeers, clean bool, err error) {
	found.refusals = map[string]string{}
	has, err := api.Ask[api.NeighborList](ctx, agent, http.MethodGet, neighborsPath, nil, nil)
	var refused *api.Error
	if errors.As(err, &refused) && refused.Code == api.NotFound && len(peerings) == 0 {
		return found, true, nil // an agent that knows of no such thing
	} else if err != nil {
		return found, false, err
	}
	known, wanted := map[string]api.Neighbor{}, map[string]bool{}
	for _, n := range has.Items {
		known[n.Name] = n
	}
	sets, broken := make([][]api.Neighbor, len(peerings)), false
	for i := range peerings {
		set, err := plan.Neighbors(r.Prefix, &peerings[i])
		if err != nil {
			found.refusals[peerings[i].Name], broken = err.Error(), true
		}
		for _, n := range set {
			wanted[n.Name] = true
			if !sameNeighbor(known[n.Name], n) {
				sets[i] = append(sets[i], n)
			}
		}
	}
	var gone []string
	for _, n := range has.Items {
		if strings.HasPrefix(n.Name, plan.NeighborsPrefix(r.Prefix)) && !wanted[n.Name] && !broken {
			gone = append(gone, n.Name)
		}
	}
	if len(gone) > 0 {
		if err := declare(ctx, agent, api.NeighborDeclaration{Remove: gone}); err != nil {
			return found, false, err
		}
	}
	for i, set := range sets {
		if len(set) == 0 {
			continue
		}
		err := declare(ctx, agent, api.NeighborDeclaration{Set: set})
		if errors.As(err, &refused) {
			found.refusals[peerings[i].Name] = refused.Message
		} else if err != nil {
			return found, false, err
		}
	}
	if len(peerings) > 0 {
		found.peers, err = agent.BGPPeers(ctx)
	}
	return found, !broken, err
}

func declare(ctx context.Context, agent *api.Client, d api.NeighborDeclaration) error {
	_, err := api.Ask[api.DeclarationMade](ctx, agent, http.MethodPatch, neighborsPath, nil, d)
	return err
}

// sameNeighbor compares neighbors of which all is said.
func sameNeighbor(a, b api.Neighbor) bool {
	textA, errA := json.Marshal(a)
	textB, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}

// note keeps what an edge said; nil: it is gone.
func (r *neighbors) note(edge string, found *edgePeers, peerings []v1alpha1.BGPPeering) {
	r.mu.Lock()
	if found == nil {
		delete(r.edges, edge)
		delete(r.clients, edge)
	} else {
		r.edges[edge] = *found
	}
	r.mu.Unlock()
	for i := range peerings {
		r.peering(peerings[i].Name)
	}
}

// of is what an edge said.
func (r *neighbors) of(edge string) (edgePeers, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.edges[edge]
	return found, ok
}

// edgeNamed is a request about an Edge, or another object of the whole cluster.
func edgeNamed(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
