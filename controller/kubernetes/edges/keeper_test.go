package edges_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/kubernetes/edges"
	"sextant/controller/kubernetes/plan"
)

const edgeFile = `
node: edge1
domain:
  block: fcbb:bb00::/32
  locators: [fd00:c0de::/32]
  infrastructure: [fd00:5e::/48]
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: eth0}]
  source: fd00:5e::e1
  encapsulation: srh
  services:
    - {name: mine, vip: "2001:db8:99::1", port: 80}
    - {name: k8s.old, vip: "2001:db8:99::2", port: 80}
`

// agent is the API of an agent whose configuration is real; it fails, and is changed by an
// operator, as a test says.
type agent struct {
	mu    sync.Mutex
	node  *config.Node
	slow  time.Duration // until it has listed its services
	fails func() bool
	// refuses says why a change is refused, if it is
	refuses func() error
	room    int // services that it takes; 0: as many as there are
	edits   int // by the operator
	asked   int
	most    int // backends in one change
	writes  int
}

var errAway = errors.New("no answer")

func newAgent(t *testing.T) *agent {
	node, err := config.Parse("edge.yaml", []byte(edgeFile))
	if err != nil {
		t.Fatal(err)
	}
	return &agent{node: node, fails: func() bool { return false },
		refuses: func() error { return nil }}
}

func (a *agent) print() string { return fmt.Sprintf("%p %d", a.node, a.edits) }

func (a *agent) Declared(context.Context) (api.DeclaredList, error) {
	time.Sleep(a.slow)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fails() {
		return api.DeclaredList{}, errAway
	}
	list := api.DeclaredList{Fingerprint: a.print()}
	for _, s := range a.node.Edge.Services {
		d := s.Declaration()
		one := api.Declared{Name: d.Name, MaxBackends: d.MaxBackends}
		hold := d.ReturnHold.Seconds()
		one.VIP, one.Port, one.Protocol, one.ReturnHoldSeconds = d.VIP, d.Port, d.Protocol, &hold
		for _, b := range d.Backends {
			one.Backends = append(one.Backends, api.DeclaredBackend{Name: b.Name,
				BackendSpec: api.BackendSpec{SID: b.SID, Weight: b.Weight, State: b.State}})
		}
		list.Items = append(list.Items, one)
	}
	return list, nil
}

func (a *agent) Declare(_ context.Context, d api.Declaration) (api.DeclarationMade, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fails() {
		return api.DeclarationMade{}, errAway
	}
	a.asked++
	if err := a.refuses(); err != nil {
		return api.DeclarationMade{}, err
	}
	if d.Fingerprint != a.print() {
		return api.DeclarationMade{}, &api.Error{Code: api.Stale, Message: "another runs"}
	}
	var set []config.Declared
	for _, one := range d.Set {
		c := config.Declared{Name: one.Name, ServiceChange: config.ServiceChange{VIP: one.VIP,
			Port: one.Port, Protocol: one.Protocol}, MaxBackends: one.MaxBackends}
		if one.ReturnHoldSeconds != nil {
			hold := time.Duration(*one.ReturnHoldSeconds * float64(time.Second))
			c.ReturnHold = &hold
		}
		for _, b := range one.Backends {
			c.Backends = append(c.Backends, config.DeclaredBackend{Name: b.Name,
				BackendChange: config.BackendChange{SID: b.SID, Weight: b.Weight, State: b.State}})
		}
		set = append(set, c)
	}
	next, err := config.Declare(a.node, set, d.Remove)
	if err != nil {
		return api.DeclarationMade{}, &api.Error{Code: api.Invalid, Message: err.Error()}
	}
	if a.room > 0 && len(next.Edge.Services) > a.room {
		return api.DeclarationMade{}, &api.Error{Code: api.Conflict, Message: "it is full"}
	}
	a.node = next
	backends := 0
	for _, one := range d.Set {
		backends += len(one.Backends)
	}
	a.most = max(a.most, backends)
	a.writes++
	return api.DeclarationMade{Fingerprint: a.print()}, nil
}

// names are those of the services that the agent has, with their backends.
func (a *agent) services() (list []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.node.Edge.Services {
		text := s.Name + " " + s.Endpoint.String()
		for _, b := range s.Backends {
			text += " " + b.SID.String()
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

func result(name string, vip, backends int) plan.Result {
	at := config.Endpoint{VIP: netip.MustParseAddr(fmt.Sprintf("2001:db8:80::%x", vip)),
		Protocol: config.TCP, Port: 80}
	f := plan.Frontend{Name: name, Endpoint: at}
	var g plan.Group
	for i := range backends {
		a := netip.MustParseAddr(fmt.Sprintf("fd00:10::%x", i+1))
		g.Endpoints = append(g.Endpoints, plan.Endpoint{Name: fmt.Sprint("p", i), Address: a,
			Weight: 1, State: config.Up})
	}
	f.Groups = []plan.Group{g}
	return f.Build(func(_ string, pod netip.Addr, _ config.Endpoint) (plan.Place, string) {
		sid := pod.As16()
		sid[2], sid[3] = 0xc0, 0xde
		sid[0], sid[1] = 0xfd, 0x00
		return plan.Place{SID: netip.AddrFrom16(sid)}, ""
	})
}

// Whatever fails on the way, and whatever an operator changes meanwhile, an edge has what is
// planned in the end: no service of the cluster more, and none of others less.
func TestEdgesConverge(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			a := newAgent(t)
			chance, luck := 30, rand.New(rand.NewPCG(seed, 2)) // of the agent, under its mutex
			a.fails = func() bool { return luck.IntN(100) < chance }
			b := edges.NewBoard("k8s", func(string) {})
			b.Set("edge1", a, "", func(edges.Report) {})
			planned := map[string]string{}
			for i := range 300 {
				if i == 20 {
					b.Whole()
				}
				number := r.IntN(20)
				owner := fmt.Sprint("o", number)
				name := "k8s." + owner
				if r.IntN(4) == 0 {
					b.Post(owner, nil)
					delete(planned, name)
				} else {
					one := result(name, r.IntN(3)*100+number+1, r.IntN(5))
					b.Post(owner, []plan.Result{one})
					planned[name] = describe(one)
				}
				if r.IntN(20) == 0 {
					a.mu.Lock()
					a.edits++
					a.node, _ = config.Declare(a.node, nil, []string{name})
					a.mu.Unlock()
				}
				if r.IntN(3) == 0 {
					time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
				}
			}
			a.mu.Lock()
			chance = 0
			a.mu.Unlock()
			time.Sleep(5 * time.Minute)
			b.Stop()
			want := []string{"mine [2001:db8:99::1]:80/tcp"}
			for _, text := range planned {
				want = append(want, text)
			}
			slices.Sort(want)
			if got := a.services(); !slices.Equal(got, want) {
				t.Errorf("seed %d: the agent has\n%s\nwant\n%s", seed, strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		})
	}
}

func describe(r plan.Result) string {
	text := r.Name + " " + r.At.String()
	for _, b := range r.For("").Backends {
		text += " " + b.SID.String()
	}
	return text
}

// A service that an agent refuses holds up no other, and its owner hears why; also while the agent
// is asked again what it has.
func TestRefusedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		a.slow = 5 * time.Second
		told := make(chan string, 1000)
		b := edges.NewBoard("k8s", func(owner string) { told <- owner })
		for i := range 50 {
			b.Post(fmt.Sprint(i), []plan.Result{result(fmt.Sprint("k8s.", i), i+1, 1)})
		}
		for _, owner := range []string{"bad", "worse"} {
			bad := result("k8s."+owner, 0xffff, 1)
			d := bad.For("")
			vip := netip.MustParseAddr("fd00:5e::1") // inside the domain
			d.VIP = &vip
			bad.Zones = map[string]api.Declared{"": d}
			b.Post(owner, []plan.Result{bad})
		}
		said := map[string]bool{}
		b.Set("edge1", a, "", func(r edges.Report) { said[r.Trouble] = true })
		b.Whole()
		time.Sleep(time.Minute)
		for range 30 * 60 {
			time.Sleep(time.Second)
			s := b.States("bad")[0]
			if s.Serves || s.Current || !strings.Contains(s.Trouble, "infrastructure") {
				t.Fatalf("of the refused one is said: %+v", s)
			}
			if s := b.States("7")[0]; !s.Serves || !s.Current || s.Trouble != "" {
				t.Fatalf("of another is said: %+v", s)
			}
		}
		if got := len(a.services()); got != 51 {
			t.Errorf("the agent has %d services, want 51", got)
		}
		b.Stop()
		if len(said) != 1 {
			t.Errorf("of the edge is said by turns: %q", slices.Collect(maps.Keys(said)))
		}
	})
}

// An agent that is full is not asked for each of those that it refused again and again; when it has
// room, all come.
func TestFullAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		a.room = 1 + 200 // and "mine"
		b := edges.NewBoard("k8s", func(string) {})
		var all []plan.Result
		for i := range 300 {
			all = append(all, result(fmt.Sprint("k8s.", i), i+1, 1))
			b.Post(fmt.Sprint(i), all[i:])
		}
		b.Set("edge1", a, "", func(edges.Report) {})
		b.Whole()
		time.Sleep(30 * time.Second)
		refused := 0
		for i := range all {
			if s := b.States(fmt.Sprint(i))[0]; s.Trouble == "it is full" && !s.Serves {
				refused++
			}
		}
		if got := len(a.services()); got != 201 || refused != 100 {
			t.Errorf("the agent has %d services, and %d were refused, want 201 and 100", got,
				refused)
		}
		a.mu.Lock()
		a.asked = 0
		a.mu.Unlock()
		for i := range all { // nothing new
			b.Post(fmt.Sprint(i), all[i:i+1])
		}
		time.Sleep(10 * time.Minute)
		a.mu.Lock()
		if a.asked < 10 || a.asked > 11*8 { // 8 at each look
			t.Errorf("in ten minutes it was asked %d times to take what it refused", a.asked)
		}
		a.room = 250
		a.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if got := len(a.services()); got != 250 {
			t.Errorf("the agent has %d services, and room for 250", got)
		}
		b.Post("0", nil)
		a.mu.Lock()
		a.room = 0
		a.mu.Unlock()
		time.Sleep(2 * time.Minute)
		b.Stop()
		if got := len(a.services()); got != 300 {
			t.Errorf("the agent has %d services, want 300", got)
		}
	})
}

// Services with many backends are told in changes that an agent makes in time; one that has more
// than these alone. Each change is full: eight services of 600, eight, four, and the huge one.
func TestChangesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		b := edges.NewBoard("k8s", func(string) {})
		for i := range 20 {
			b.Post(fmt.Sprint(i), []plan.Result{result(fmt.Sprint("k8s.", i), i+1, 600)})
		}
		b.Post("huge", []plan.Result{result("k8s.huge", 100, 6000)})
		b.Set("edge1", a, "", func(edges.Report) {})
		b.Whole()
		time.Sleep(time.Minute)
		b.Stop()
		if got := len(a.services()); got != 22 {
			t.Errorf("the agent has %d services, want 22", got)
		}
		if a.writes != 4 || a.most != 6000 {
			t.Errorf("%d changes, the largest of %d backends; want 4, and 6000", a.writes, a.most)
		}
	})
}

// Nothing is sent that the agent has already, and the owner hears that it has: the controller that
// sent it may have died before it wrote so.
func TestNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		for i := range 2 {
			told := 0
			b := edges.NewBoard("k8s", func(string) { told++ })
			b.Post("o", []plan.Result{result("k8s.o", 1, 3)})
			b.Set("edge1", a, "", func(edges.Report) {})
			b.Whole()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if told != 1 || !b.States("o")[0].Serves {
				t.Errorf("controller %d: the owner was told %d times, %+v", i, told, b.States("o"))
			}
			b.Stop()
		}
		if a.writes != 1 {
			t.Errorf("the agent was changed %d times, want once", a.writes)
		}
	})
}

// An agent that answers and takes no change, as with a token that may only read, is asked less and
// less often.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		asked := 0
		a.refuses = func() error {
			if asked++; asked > 1000 {
				return nil // else this test would not end
			}
			return &api.Error{Code: api.Forbidden, Message: "the token may only read"}
		}
		b := edges.NewBoard("k8s", func(string) {})
		b.Post("o", []plan.Result{result("k8s.o", 1, 3)})
		b.Set("edge1", a, "", func(edges.Report) {})
		b.Whole()
		time.Sleep(time.Minute)
		b.Stop()
		if asked < 2 || asked > 20 { // 100 ms, doubled up to 5 s
			t.Errorf("within a minute the agent was asked %d times for a change", asked)
		}
	})
}
