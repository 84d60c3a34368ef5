package controller

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/kubernetes/v1alpha1"
)

const speaker = `
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge: {interfaces: [{name: eth0}], source: "fd00:5e::e1"}
bgp: {asn: 64512, routerID: 192.0.2.1, neighbors: [{address: "2001:db8::9", asn: 64512}]}
`

// speakerAgent is an agent of which only BGP neighbors are real.
type speakerAgent struct {
	api.Agent
	mu   sync.Mutex
	node *config.Node
}

func (a *speakerAgent) Config(context.Context) (*config.Node, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node, nil
}

func (a *speakerAgent) Change(_ context.Context,
	edit func(*config.Node) (*config.Node, error)) ([]config.Change, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, err := edit(a.node)
	if err != nil {
		return nil, err
	}
	changes := config.Diff(a.node, next)
	a.node = next
	return changes, nil
}

func (a *speakerAgent) BGPPeers(context.Context) (list []api.BGPPeer, err error) {
	for _, n := range a.node.BGP.Neighbors {
		list = append(list, api.BGPPeer{Address: n.Address, ASN: n.ASN, State: established})
	}
	return list, nil
}

func (a *speakerAgent) Metrics() http.Handler { return http.NotFoundHandler() }

func newSpeaker(t *testing.T) (*speakerAgent, *api.Client) {
	node, err := config.Parse("edge.yaml", []byte(speaker))
	if err != nil {
		t.Fatal(err)
	}
	a := &speakerAgent{node: node}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: api.NewHandler(a)}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { server.Close() })
	return a, api.NewClient(socket)
}

// drawPeerings makes peerings of few neighbors, some of which nobody takes.
func drawPeerings(t *rapid.T) (list []v1alpha1.BGPPeering) {
	for i := range rapid.IntRange(0, 3).Draw(t, "peerings") {
		p := v1alpha1.BGPPeering{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}}
		for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 5), 0, 3, rapid.ID).
			Draw(t, "neighbors") {
			p.Spec.Neighbors = append(p.Spec.Neighbors, v1alpha1.BGPNeighbor{
				Address: fmt.Sprint("2001:db8::", n), ASN: 64512, Port: 179,
				Families:        []string{"ipv6-unicast"},
				HoldTimeSeconds: int32(rapid.IntRange(8, 10).Draw(t, "hold"))})
		}
		list = append(list, p)
	}
	return list
}

// From whatever an edge has, its neighbors become those that are asked for, and its own stay: all
// of the oldest peering, and of another one all or, if one is taken, none.
func TestNeighborsConverge(t *testing.T) {
	a, client := newSpeaker(t)
	r := &neighbors{state: &state{Config: Config{Prefix: "k8s"}}}
	rapid.Check(t, func(t *rapid.T) {
		peerings := drawPeerings(t)
		var found edgePeers
		for range 3 { // one that was refused may have had what another asks for now
			var clean bool
			var err error
			if found, clean, err = r.converge(context.Background(), client, peerings); err != nil ||
				!clean {
				t.Fatalf("%v, clean %v", err, clean)
			}
		}
		got := map[string]string{}
		for _, n := range a.node.BGP.Neighbors {
			got[n.Address.String()] = fmt.Sprint(n.Name, " ", n.HoldTime.Seconds())
		}
		if got["2001:db8::9"] != " 90" {
			t.Fatalf("the node file's own neighbor is not left alone: %v", got)
		}
		delete(got, "2001:db8::9")
		for _, p := range peerings {
			has, can := 0, true
			for _, n := range p.Spec.Neighbors {
				name, _, _ := strings.Cut(got[n.Address], " ")
				if strings.HasPrefix(name, "k8s."+p.Name+".") {
					has++
				} else {
					can = can && name == ""
				}
			}
			refused := found.refusals[p.Name] != ""
			if refused == can || !refused && has != len(p.Spec.Neighbors) {
				t.Fatalf("%s has %d of %d neighbors, refused %v: %v", p.Name, has,
					len(p.Spec.Neighbors), refused, got)
			}
			for _, n := range p.Spec.Neighbors {
				want := fmt.Sprintf("k8s.%s.2001-db8--%s %d", p.Name,
					n.Address[len("2001:db8::"):], n.HoldTimeSeconds)
				if !refused && got[n.Address] != want {
					t.Fatalf("neighbor %s is %q, want %q", n.Address, got[n.Address], want)
				}
			}
		}
		for _, text := range slices.Collect(maps.Values(got)) {
			if !slices.ContainsFunc(peerings, func(p v1alpha1.BGPPeering) bool {
				return strings.HasPrefix(text, "k8s."+p.Name+".")
			}) {
				t.Fatalf("the edge has %q, which no peering asks for", text)
			}
		}
	})
}

// While a peering can't be read, what the edge has of it stays.
func TestBrokenPeering(t *testing.T) {
	a, client := newSpeaker(t)
	r := &neighbors{state: &state{Config: Config{Prefix: "k8s"}}}
	p := v1alpha1.BGPPeering{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.Neighbors = []v1alpha1.BGPNeighbor{{Address: "2001:db8::1", ASN: 64512, Port: 179,
		Families: []string{"ipv6-unicast"}, HoldTimeSeconds: 9}}
	for _, address := range []string{"2001:db8::1", "2001:db8::x"} {
		p.Spec.Neighbors[0].Address = address
		found, _, err := r.converge(t.Context(), client, []v1alpha1.BGPPeering{p})
		if err != nil || (found.refusals["p"] == "") != (address == "2001:db8::1") {
			t.Fatalf("%s: %v, %v", address, found.refusals, err)
		}
		if n := a.node.BGP.Neighbors; len(n) != 2 ||
			n[1].Address != netip.MustParseAddr("2001:db8::1") {
			t.Errorf("%s: neighbors are %+v", address, n)
		}
	}
}

// What conditions say of edges in each state.
func TestPeeringConditions(t *testing.T) {
	p := &v1alpha1.BGPPeering{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.Neighbors = []v1alpha1.BGPNeighbor{{Address: "2001:db8::1"}}
	edge := []v1alpha1.Edge{{ObjectMeta: metav1.ObjectMeta{Name: "edge1"}}}
	up := []api.BGPPeer{{Address: netip.MustParseAddr("2001:db8::1"), State: established}}
	down := []api.BGPPeer{{Address: up[0].Address, State: "active", Reason: "no route"}}
	for _, c := range []struct {
		name            string
		edges           []v1alpha1.Edge
		said            map[string]edgePeers
		only            string // edge
		accepted, words string // the condition Accepted
		session         string // the condition Established
	}{
		{"no edge", nil, nil, "", "Pending", "there is no Edge: make one", "there is no session"},
		{"not asked", edge, nil, "", "Pending", "edge1: it was not asked", "2001:db8::1: unknown"},
		{"up", edge, map[string]edgePeers{"edge1": {peers: up}}, "", "Accepted", "", ""},
		{"down", edge, map[string]edgePeers{"edge1": {peers: down}}, "", "Accepted", "",
			"edge1 with 2001:db8::1: active, no route"},
		{"away", edge, map[string]edgePeers{"edge1": {trouble: "no answer"}}, "", "Pending",
			"edge1: no answer", "unknown"},
		{"refused", edge, map[string]edgePeers{"edge1": {peers: up,
			refusals: map[string]string{"p": "given twice"}}}, "", "Refused", "edge1: given twice",
			"unknown"},
		{"another edge", edge, map[string]edgePeers{"edge1": {peers: up}}, "edge2", "Refused",
			"there is no Edge edge2", "there is no session"},
	} {
		p.Spec.Edges = nil
		if c.only != "" {
			p.Spec.Edges = []string{c.only}
		}
		list := conditionsOf(p, c.edges, c.said, sessionsOf(p, c.edges, c.said))
		if got := list[0]; got.Reason != c.accepted || !strings.Contains(got.Message, c.words) ||
			(got.Status == metav1.ConditionTrue) != (c.accepted == "Accepted") {
			t.Errorf("%s: Accepted is %s, %s: %s", c.name, got.Status, got.Reason, got.Message)
		}
		if got := list[1]; !strings.Contains(got.Message, c.session) ||
			(got.Status == metav1.ConditionTrue) != (c.session == "") {
			t.Errorf("%s: Established is %s: %s", c.name, got.Status, got.Message)
		}
	}
}
