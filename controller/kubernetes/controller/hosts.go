package controller

import (
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"sextant/config"
	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// hosts knows what nodes say of their pods, and which nodes are excluded.
type hosts struct {
	mu       sync.RWMutex
	nodes    map[string]node
	excluded map[string]bool
}

// node is what one says: of each address of a pod its SID, and the endpoints that it is ready for,
// or those that it is not ready for, and why.
type node map[netip.Addr]taken

type taken struct {
	sid           netip.Addr
	serves, fails []string
	why           string
}

func newHosts() *hosts { return &hosts{nodes: map[string]node{}, excluded: map[string]bool{}} }

// set replaces what a node says, and returns the endpoints for which that makes a difference. What
// can't be read is left out: another node must not suffer from it.
func (h *hosts) set(name string, status *v1alpha1.HostStatus) (changed map[string]bool) {
	next := node{}
	if status != nil {
		for _, e := range status.Endpoints {
			a, errA := netip.ParseAddr(e.Address)
			sid, errS := netip.ParseAddr(e.SID)
			if errA != nil || errS != nil || !sid.Is6() {
				continue
			}
			next[a] = taken{sid: sid, serves: slices.Sorted(slices.Values(e.Serves))}
		}
		for _, p := range status.Problems {
			if a, err := netip.ParseAddr(p.Address); err == nil {
				t := next[a]
				t.fails, t.why = p.Services, p.Why
				next[a] = t
			}
		}
	}
	h.mu.Lock()
	before := h.nodes[name]
	h.nodes[name] = next
	if status == nil {
		delete(h.nodes, name)
	}
	h.mu.Unlock()
	changed = map[string]bool{}
	differences(before, next, changed)
	differences(next, before, changed)
	return changed
}

// differences notes the endpoints that b does not have as a has them.
func differences(a, b node, changed map[string]bool) {
	for address, t := range a {
		other, ok := b[address]
		for _, e := range t.serves {
			if !ok || other.sid != t.sid || !slices.Contains(other.serves, e) {
				changed[e] = true
			}
		}
		for _, e := range t.fails {
			if other.why != t.why || !slices.Contains(other.fails, e) {
				changed[e] = true
			}
		}
	}
}

// where is plan.Where.
func (h *hosts) where(name string, pod netip.Addr, e config.Endpoint) (plan.Place, string) {
	if name == "" {
		return plan.Place{}, "its EndpointSlice names no node"
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	n, ok := h.nodes[name]
	if !ok {
		return plan.Place{}, "node " + name + " is no host of Sextant: see that a pod of the " +
			"DaemonSet sextant-node runs there, and that the Node has the annotation " +
			v1alpha1.Group + "/locator"
	}
	t, ok := n[pod]
	_, serves := slices.BinarySearch(t.serves, e.String())
	switch {
	case serves:
	case slices.Contains(t.fails, e.String()):
		return plan.Place{}, "node " + name + ": " + t.why
	case !ok:
		return plan.Place{}, "node " + name + " does not take packets for it yet"
	default:
		return plan.Place{}, "node " + name + " does not take packets of this service for it yet"
	}
	at := plan.Place{SID: t.sid}
	if h.excluded[name] {
		at.Excluded = "node " + name + " has the label " + corev1.LabelNodeExcludeBalancers +
			": it gets no new connections"
	}
	return at, ""
}

// exclude notes whether a node gets new connections, and returns the endpoints of its pods if that
// is news.
func (h *hosts) exclude(name string, excluded bool) (changed map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.excluded[name] == excluded {
		return nil
	}
	h.excluded[name] = excluded
	if !excluded {
		delete(h.excluded, name)
	}
	changed = map[string]bool{}
	for _, t := range h.nodes[name] {
		for _, e := range t.serves {
			changed[e] = true
		}
	}
	return changed
}
