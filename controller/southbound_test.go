package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundtest"
	"sextant/packet/flow"
	"sextant/te/topology/generate"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fakeHead is a head-end without a kernel.
type fakeHead struct {
	mutex   sync.Mutex
	paths   map[flow.Tuple]southbound.Path
	sets    int
	groups  map[netip.Prefix]southbound.Group
	weighed int // how often
	refuse  error
	news    chan struct{}
}

func newFakeHead() *fakeHead {
	return &fakeHead{paths: map[flow.Tuple]southbound.Path{}, news: make(chan struct{}, 1000),
		groups: map[netip.Prefix]southbound.Group{}}
}

func (h *fakeHead) SetPath(_ context.Context, p southbound.Path) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	defer func() { h.news <- struct{}{} }()
	if h.refuse != nil {
		return h.refuse
	}
	h.paths[p.Flow] = p
	h.sets++
	return nil
}

func (h *fakeHead) ClearPath(_ context.Context, t flow.Tuple) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.paths, t)
	h.news <- struct{}{}
	return nil
}

func (h *fakeHead) SetGroups(_ context.Context, groups []southbound.Group) []error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	failures := make([]error, len(groups))
	for i, g := range groups {
		if failures[i] = h.refuse; h.refuse == nil {
			h.groups[g.Prefix] = g
			h.weighed++
		}
	}
	return failures
}

func (h *fakeHead) ClearGroup(_ context.Context, prefix netip.Prefix) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.groups, prefix)
	return nil
}

func (h *fakeHead) Filter(context.Context, *net.UDPConn,
	flow.Secret) (southbound.Filter, error) {
	return nil, errors.New("no kernel here")
}

func (h *fakeHead) Held(context.Context) (paths []southbound.Path, groups []netip.Prefix,
	err error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, p := range h.paths {
		paths = append(paths, p)
	}
	for prefix := range h.groups {
		groups = append(groups, prefix)
	}
	return paths, groups, nil
}

// group is the group of a prefix, and how often groups were set.
func (h *fakeHead) group(prefix netip.Prefix) (g southbound.Group, known bool, sets int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	g, known = h.groups[prefix]
	return g, known, h.weighed
}

func (h *fakeHead) segments(t flow.Tuple) []netip.Addr {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.paths[t].Segments
}

// southLab is a place for controllers and head-ends with certificates.
type southLab struct {
	t         *testing.T
	dir       string
	authority *southboundtest.Authority
}

func newSouthLab(t *testing.T) *southLab {
	t.Helper()
	dir := t.TempDir()
	l := &southLab{t, dir, southboundtest.NewAuthority(t, dir)}
	l.authority.Leaf(t, "controller", netip.IPv6Loopback())
	l.authority.Leaf(t, "router")
	write(t, filepath.Join(dir, "tokens"), "# routers\nleaf1 one\nleaf2 two\n")
	write(t, filepath.Join(dir, "token1"), "one\n")
	write(t, filepath.Join(dir, "token2"), "two\n")
	return l
}

// freePort is a port of the loopback interface that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

const controllerText = `block: "fcbb:bb00::/32"
policy: {backoffLeast: 0s, backoffMost: 0s}
southbound:
  listen: "%s"
  epoch: %d
  lease: 100ms
  decap: e0d6
  tokens: %[3]s/tokens
  tls: {ca: %[3]s/ca.pem, certificate: %[3]s/controller.pem, key: %[3]s/controller.key}
%s`

// controller starts one.
func (l *southLab) controller(address string, epoch int, more string) (*Client, func()) {
	l.t.Helper()
	return start(l.t, fmt.Sprintf(controllerText, address, epoch, l.dir, more))
}

func (l *southLab) follower(h southbound.Headend, change func(*southbound.Options),
	addresses ...string) *southbound.Follower {
	o := southbound.Options{Controllers: addresses, Router: "leaf1", Version: "test",
		Datagrams: true, Capacity: 1000, TokenFile: filepath.Join(l.dir, "token1"), Headend: h,
		TLS: southbound.Files{CA: filepath.Join(l.dir, "ca.pem"),
			Certificate: filepath.Join(l.dir, "router.pem"),
			Key:         filepath.Join(l.dir, "router.key")},
		Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	f := southbound.Follow(o)
	l.t.Cleanup(f.Stop)
	return f
}

const awaited = 30 * time.Second

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(awaited); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func (l *southLab) headEnd(c *Client) HeadEnd {
	l.t.Helper()
	s, err := c.Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, h := range s.HeadEnds {
		if h.Router == "leaf1" {
			return h
		}
	}
	return HeadEnd{}
}

func move(t *testing.T, c *Client, port uint16) Decision {
	t.Helper()
	decisions, err := c.Report(t.Context(), []Report{paused(port, "leaf1", "spine1", "leaf2")})
	if err != nil || len(decisions) != 1 || decisions[0].Verdict != "moved" {
		t.Fatalf("%+v, %v", decisions, err)
	}
	return decisions[0]
}

func tuple(t *testing.T, port uint16) flow.Tuple {
	t.Helper()
	tuple, err := tupleOf(testFlow(port))
	if err != nil {
		t.Fatal(err)
	}
	return tuple
}

// numberOf is a router's, as the plan gives them.
func numberOf(t *testing.T, router string) int {
	t.Helper()
	g, err := generate.SpineLeaf(4, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := g.Lookup(router)
	if !ok {
		t.Fatalf("no router %s", router)
	}
	return int(v) + 1
}

func spineSID(t *testing.T, spine string) netip.Addr {
	t.Helper()
	return netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", numberOf(t, spine)))
}

// A decision reaches the head-end as SIDs of the path's routers, and the flow's state says so; a
// refusal is shown, and the flow is not taken to have moved.
func TestDecisionsReachTheHeadEnd(t *testing.T) {
	l, address, h := newSouthLab(t), freePort(t), newFakeHead()
	c, stop := l.controller(address, 1, "queueBytes: 1000")
	defer stop()
	l.follower(h, nil, address)
	await(t, "leaf1 follows", func() bool { return l.headEnd(c).Followed })
	d := move(t, c, 1)
	await(t, "the path is applied", func() bool {
		f, err := c.Flow(t.Context(), testFlow(1))
		return err == nil && f.State == pathApplied
	})
	want := []netip.Addr{spineSID(t, d.Path[1]),
		netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x:e0d6::", numberOf(t, "leaf2")))}
	if got := h.segments(tuple(t, 1)); !slices.Equal(got, want) {
		t.Errorf("path %v has become %v, want %v", d.Path, got, want)
	}
	if text := scrape(t, c); !strings.Contains(text, "sextant_controller_apply_seconds_count 1") {
		t.Errorf("metrics do not count one path that was applied:\n%s", text)
	}
	h.mutex.Lock()
	h.refuse = errors.New("no room")
	h.mutex.Unlock()
	move(t, c, 2)
	await(t, "the refusal is known", func() bool {
		f, err := c.Flow(t.Context(), testFlow(2))
		return err == nil && f.State == pathRefused && f.Problem == "no room" && len(f.Path) == 0
	})
	if got := l.headEnd(c); got.Applied != 1 || got.Refused != 1 || got.LastError != "no room" {
		t.Errorf("%+v", got)
	}
}

// A controller that is gone changes nothing. The next one knows the paths that head-ends have, and
// decides nothing before it does; pins wait for them.
func TestControllerRestarts(t *testing.T) {
	l, address, h := newSouthLab(t), freePort(t), newFakeHead()
	c, stop := l.controller(address, 1, "queueBytes: 1000")
	f := l.follower(h, nil, address)
	await(t, "leaf1 follows", func() bool { return l.headEnd(c).Followed })
	d := move(t, c, 1)
	await(t, "it is applied", func() bool { return h.segments(tuple(t, 1)) != nil })
	before := h.segments(tuple(t, 1))
	stop()
	await(t, "the stream has ended", func() bool { return !f.Links()[0].Connected })
	if got := h.segments(tuple(t, 1)); !slices.Equal(got, before) {
		t.Errorf("without a controller the flow has %v, before %v", got, before)
	}
	c, stop = l.controller(address, 2, "queueBytes: 1000")
	defer stop()
	pinned := Pin{testFlow(2), []string{"leaf1", "spine2", "leaf2"}}
	if err := c.Pin(t.Context(), pinned); err != nil { // before the head-end is back, or after
		t.Fatal(err)
	}
	await(t, "both paths are known and in force", func() bool {
		one, err := c.Flow(t.Context(), testFlow(1))
		two, also := c.Flow(t.Context(), testFlow(2))
		return err == nil && also == nil && one.State == pathApplied &&
			two.State == pathApplied && slices.Equal(one.Path, d.Path)
	})
	if got := l.headEnd(c); got.Adopted != 1 {
		t.Errorf("%+v, and one path was to be adopted", got)
	}
}

// Of two controllers the one of the higher epoch is followed, whichever came first; changes of the
// other are refused. When it is gone, the other one is followed after its lease.
func TestTwoControllers(t *testing.T) {
	l, h := newSouthLab(t), newFakeHead()
	addresses := []string{freePort(t), freePort(t)}
	old, stopOld := l.controller(addresses[0], 7, "queueBytes: 1000")
	defer stopOld()
	f := l.follower(h, nil, addresses...)
	await(t, "the only one is followed", func() bool { return l.headEnd(old).Followed })
	move(t, old, 3)
	await(t, "a path is in force", func() bool { return h.segments(tuple(t, 3)) != nil })
	young, stopYoung := l.controller(addresses[1], 8, "queueBytes: 1000")
	await(t, "the higher epoch is followed", func() bool {
		return l.headEnd(young).Followed && l.headEnd(old).Epoch == 8
	})
	if got := l.headEnd(old); got.Followed {
		t.Errorf("the older one believes it is followed: %+v", got)
	}
	decisions, err := old.Report(t.Context(), []Report{paused(1, "leaf1", "spine1", "leaf2")})
	if err != nil || len(decisions) > 0 {
		t.Errorf("one that is not followed decides %+v, %v", decisions, err)
	}
	move(t, young, 2)
	other := Pin{testFlow(3), []string{"leaf1", "spine2", "leaf2"}}
	if first := h.segments(tuple(t, 3)); slices.Contains(first, spineSID(t, "spine2")) {
		other.Path[1] = "spine3"
	}
	if err := young.Pin(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	await(t, "the followed one has changed the older one's path", func() bool {
		return slices.Contains(h.segments(tuple(t, 3)), spineSID(t, other.Path[1]))
	})
	await(t, "the followed one's path is applied", func() bool {
		return h.segments(tuple(t, 2)) != nil
	})
	s, err := old.Status(t.Context())
	if err != nil || !slices.ContainsFunc(s.Warnings, func(w string) bool {
		return strings.Contains(w, "follows another controller, of epoch 8; this one has 7")
	}) {
		t.Errorf("warnings %q, %v", s.Warnings, err)
	}
	if s.Observed != 1 {
		t.Errorf("%d reports were observed only, want 1", s.Observed)
	}
	links := f.Links()
	if links[0].Followed || !links[1].Followed {
		t.Errorf("%+v", links)
	}
	stopYoung()
	await(t, "the older one is followed after the lease, and knows the path", func() bool {
		f, err := old.Flow(t.Context(), testFlow(2))
		return err == nil && f.State == pathApplied && l.headEnd(old).Followed
	})
	if f, err := old.Flow(t.Context(), testFlow(3)); err != nil ||
		!slices.Equal(f.Path, other.Path) {
		t.Errorf("the older one knows %+v, %v; the younger one has set %v", f, err, other.Path)
	}
	move(t, old, 1)
	await(t, "it sets a path", func() bool { return h.segments(tuple(t, 1)) != nil })
	if !slices.Contains(h.segments(tuple(t, 3)), spineSID(t, other.Path[1])) {
		t.Errorf("flow 3 is back on %v", h.segments(tuple(t, 3)))
	}
}

// Who has another token, another router's, no certificate, or one that someone else signed is not
// admitted; nor is a router that the topology does not have.
func TestWhoIsAdmitted(t *testing.T) {
	l, address := newSouthLab(t), freePort(t)
	c, stop := l.controller(address, 1, "queueBytes: 1000")
	defer stop()
	foreign := southboundtest.NewAuthority(t, t.TempDir()).Leaf(t, "router")
	stranger := foreign
	stranger.CA = filepath.Join(l.dir, "ca.pem")
	write(t, filepath.Join(l.dir, "tokens"), "leaf1 one\nleaf2 two\nleaf9 nine\n")
	write(t, filepath.Join(l.dir, "token9"), "nine\n")
	for what, test := range map[string]struct {
		change  func(*southbound.Options)
		problem string
	}{
		"another's token": {func(o *southbound.Options) {
			o.TokenFile = filepath.Join(l.dir, "token2")
		}, `the token is not that of router "leaf1"`},
		"a router that is not there": {func(o *southbound.Options) {
			o.Router, o.TokenFile = "leaf9", filepath.Join(l.dir, "token9")
		}, `has no router "leaf9"`},
		"a foreign certificate": {func(o *southbound.Options) { o.TLS = stranger }, ""},
		"a foreign controller": {func(o *southbound.Options) {
			o.TLS.CA = foreign.CA
		}, "certificate signed by unknown authority"},
		"no token": {func(o *southbound.Options) {
			o.TokenFile = filepath.Join(l.dir, "none")
		}, "read tokenFile"},
	} {
		h := newFakeHead()
		f := l.follower(h, test.change, address)
		await(t, what, func() bool {
			problem := f.Links()[0].Problem
			return problem != "" && strings.Contains(problem, test.problem)
		})
		if f.Links()[0].Connected {
			t.Errorf("%s: connected", what)
		}
		f.Stop()
	}
	if s, err := c.Status(t.Context()); err != nil || len(s.HeadEnds) != 0 {
		t.Errorf("%+v, %v", s.HeadEnds, err)
	}
}

// Paths of flows that are known are renewed at half of their time, again and again.
func TestRenewal(t *testing.T) {
	l, address, h := newSouthLab(t), freePort(t), newFakeHead()
	c, stop := l.controller(address, 1, "  hold: 1s\nqueueBytes: 1000")
	defer stop()
	l.follower(h, nil, address)
	await(t, "leaf1 follows", func() bool { return l.headEnd(c).Followed })
	move(t, c, 1)
	await(t, "it is set three times", func() bool {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		return h.sets >= 3 && len(h.paths) == 1
	})
}

// Times by which paths would end too early, or never, are refused: by the controller's file, and
// by a head-end whose controller has others.
func TestHold(t *testing.T) {
	l := newSouthLab(t)
	for text, problem := range map[string]string{
		"hold: 15s}":                      "at least twice southbound.lease",
		"hold: 1m}\npolicy: {forget: 0s}": "policy.forget 0s",
	} {
		_, err := Parse([]byte("topology: x\nsouthbound: {listen: \"[::1]:1\", tokens: x, " +
			"tls: {ca: x, certificate: x, key: x}, " + text))
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
	address, h := freePort(t), newFakeHead()
	c, stop := start(t, fmt.Sprintf(controllerText, address, 1, l.dir, ""), func(c *Config) {
		c.Southbound.Hold = 50 * time.Millisecond // after the file is checked
	})
	defer stop()
	l.follower(h, nil, address)
	await(t, "leaf1 follows", func() bool { return l.headEnd(c).Followed })
	move(t, c, 1)
	await(t, "the path is refused", func() bool {
		f, err := c.Flow(t.Context(), testFlow(1))
		return err == nil && f.State == pathRefused &&
			strings.Contains(f.Problem, "before the lease of 100ms is over")
	})
}
