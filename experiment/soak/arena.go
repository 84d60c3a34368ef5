package soak

import (
	"context"
	"encoding/binary"
	"fmt"
	"syscall"

	"sextant/agent/api"
	"sextant/config"
	"sextant/experiment"
	"sextant/lab/loadgen"
)

// arena is the lab of examples/soak.yaml while it is up.
type arena struct {
	*experiment.Arena
	size     size
	traffic  *traffic
	recorder *experiment.Recorder

	edge  *node
	hosts []*node

	flows    uint64 // so far
	changes  int
	restarts int
	readings []reading
	loads    []*loadgen.Result
	leaks    leaks
}

// reading is what was seen after a part.
type reading struct {
	flows    uint64
	accounts map[string]account // by node
	memories map[string]memory
}

// leaks are kernel objects of agents that ended.
type leaks struct{ had, left int }

func (a *arena) nodes() []*node { return append([]*node{a.edge}, a.hosts...) }

func (a *arena) open(ctx context.Context) (err error) {
	if a.edge, err = openNode(a.Arena, "edge1", "edge"); err != nil {
		return err
	}
	for i := range hosts {
		host, err := openNode(a.Arena, fmt.Sprintf("web%d", i+1), "host")
		if err != nil {
			return err
		}
		a.hosts = append(a.hosts, host)
	}
	for _, n := range a.nodes() {
		if err := n.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *arena) soak(ctx context.Context) error {
	if err := a.open(ctx); err != nil {
		return err
	}
	for part := range a.size.parts {
		if err := a.part(ctx, part); err != nil {
			return fmt.Errorf("after %d flows, %d changes of pools and %d restarts: %w", a.flows,
				a.changes, a.restarts, err)
		}
		if err := a.look(ctx); err != nil {
			return fmt.Errorf("after %d flows, %d changes of pools and %d restarts: %w", a.flows,
				a.changes, a.restarts, err)
		}
	}
	for _, n := range a.nodes() {
		left, had, err := n.leaked()
		if err != nil {
			return err
		}
		a.leaks.had += had
		a.leaks.left += len(left.Programs) + len(left.Maps)
		if a.leaks.left > 0 {
			return fmt.Errorf("node %s: of agents that ended, programs %v and maps %v are still "+
				"in the kernel",
				n.Name, left.Programs, left.Maps)
		}
	}
	return nil
}

// part gives flows to the programs, while real connections come, pools change, and in the middle an
// agent ends.
func (a *arena) part(ctx context.Context, part int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	loaded := make(chan error, 1)
	go func() {
		err := a.load(ctx)
		if err != nil {
			cancel(err)
		}
		loaded <- err
	}()
	err := a.feed(ctx, a.size.flows*uint64(part+1)/uint64(a.size.parts))
	if err != nil {
		cancel(err)
	}
	if failed := <-loaded; err == nil {
		err = failed
	}
	return err
}

// feed gives flows to the programs up to a number.
func (a *arena) feed(ctx context.Context, until uint64) error {
	from, changed, restarted := a.flows, 0, false
	for a.flows < until && ctx.Err() == nil {
		if err := a.batch(ctx, min(a.size.batch, until-a.flows)); err != nil {
			return err
		}
		for ; changed < int(uint64(a.size.changes)*(a.flows-from)/(until-from)); changed++ {
			if err := a.change(ctx); err != nil {
				return err
			}
		}
		if a.flows >= (from+until)/2 && !restarted {
			restarted = true
			if err := a.restart(ctx); err != nil {
				return err
			}
		}
		a.recorder.Progress("%d of %d flows, %d changes of pools, %d restarts of agents", a.flows,
			a.size.flows, a.changes, a.restarts)
	}
	return nil
}

// load opens real connections to both VIPs in turn.
func (a *arena) load(ctx context.Context) error {
	url, sources := "http://[2001:db8:80::80]/?ms=1", "2001:db8:c::/112"
	if len(a.loads)%2 == 1 {
		url, sources = "http://198.51.100.80/?ms=1", "203.0.113.0/24"
	}
	result, err := experiment.Load(ctx, a.Lab, "client", nil, url, "--rate",
		fmt.Sprint(a.size.rate), "--duration", a.size.load.String(),
		"--seed", fmt.Sprint(len(a.loads)+1), "--sources", sources)
	if err == nil {
		a.loads = append(a.loads, result)
	}
	return err
}

// batch gives the packets of some flows to the edge, and what it sends to the hosts, until all is
// taken.
func (a *arena) batch(ctx context.Context, count uint64) error {
	var arriving frames
	offered := make([]frames, hosts)
	for number := a.flows; number < a.flows+count; number++ {
		a.traffic.packets(number, arriving.add)
		if number%4 == 0 { // what comes to a host, from wherever
			offered[number/4%hosts].add(a.traffic.wild.NextHost())
		}
	}
	route := func(frame []byte) {
		if host, ok := hostOf(frame); ok {
			offered[host].add(frame)
		}
	}
	if err := a.edge.feed(&arriving, route); err != nil {
		return err
	}
	for more := true; more && ctx.Err() == nil; {
		more = false
		for i, host := range a.hosts {
			in := offered[i]
			offered[i] = frames{}
			more = more || in.len() > 0
			if err := host.feed(&in, route); err != nil {
				return err
			}
		}
	}
	a.flows += count
	return nil
}

// hostOf tells to which host a frame goes, by the first identifier of its carrier, and takes one
// off its hop limit, as the router in between does. A frame that stays where it is goes to none.
func hostOf(frame []byte) (host int, ok bool) {
	at := ethernetHeader
	for at < ethernetHeader+8 && len(frame) >= at && isTag(binary.BigEndian.Uint16(frame[at-2:])) {
		at += 4
	}
	if len(frame) < at+40 || binary.BigEndian.Uint16(frame[at-2:]) != ethernetIPv6 {
		return 0, false
	}
	const destination, hopLimit = 24, 7
	sid := frame[at+destination:]
	id := binary.BigEndian.Uint16(sid[4:])
	if [4]byte(sid[:4]) != [4]byte(block.Addr().AsSlice()) || id == 0 || id > hosts ||
		frame[at+hopLimit] <= 1 {
		return 0, false
	}
	frame[at+hopLimit]--
	return int(id) - 1, true
}

func isTag(ethertype uint16) bool { return ethertype == 0x8100 || ethertype == 0x88a8 }

// The states that backends go through. Draining breaks no connection; down would, and is for
// services without real connections.
var (
	gentle = []config.BackendState{config.Draining, config.Up}
	rough  = []config.BackendState{config.Down, config.Up}
)

// change changes a backend of a service: its state or weight.
func (a *arena) change(ctx context.Context) error {
	services := []string{"web", "h3", "web-ipv4", "dns"}
	service := services[a.changes%len(services)]
	round := a.changes / len(services)
	states := gentle
	if service == "dns" || service == "h3" {
		states = rough
	}
	spec := api.BackendSpec{State: &states[round%2]}
	if round%6 >= 4 {
		weight := 1 + round%3
		spec = api.BackendSpec{Weight: &weight}
	}
	backend := fmt.Sprintf("web%d", 1+round/2%hosts)
	if _, err := a.edge.agent.PutBackend(ctx, api.Update, service, backend, spec); err != nil {
		return fmt.Errorf("change %s of service %s: %w", backend, service, err)
	}
	a.changes++
	return nil
}

// restart ends one agent after the other; every other time it is not asked.
func (a *arena) restart(ctx context.Context) error {
	signal := syscall.SIGKILL
	if a.restarts%2 == 1 {
		signal = syscall.SIGTERM
	}
	nodes := a.nodes()
	if err := nodes[a.restarts%len(nodes)].restart(ctx, signal); err != nil {
		return err
	}
	a.restarts++
	return nil
}

// look takes a reading, for which all must add up.
func (a *arena) look(ctx context.Context) error {
	r := reading{
		flows: a.flows, accounts: map[string]account{}, memories: map[string]memory{},
	}
	var err error
	for _, n := range a.nodes() {
		if r.accounts[n.Name], err = n.balance(ctx); err != nil {
			return err
		}
		if r.memories[n.Name], err = n.memory(ctx); err != nil {
			return err
		}
	}
	a.readings = append(a.readings, r)
	return nil
}
