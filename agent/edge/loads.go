package edge

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/packet/flow"
)

// The loads of servers, by which candidates are put in order. Hosts compare their loads by news
// that refused SYNs carry from one to the next; the edge, which sees none of them, asks the hosts'
// agents.

const (
	loadInterval = 500 * time.Millisecond
	// loadSpacing bounds how many agents are asked a second, of a service with many.
	loadSpacing = 4 * time.Millisecond
	loadsAtOnce = 16
	// loadLife is for how long the load of a host counts that is not heard of any more.
	loadLife = 10 * time.Second
)

// loads follows what hosts tell. The owner goroutine has it.
type loads struct {
	agents []netip.AddrPort // that are asked, sorted
	secret flow.Secret
	told   map[netip.AddrPort]hostLoads
	stop   context.CancelFunc
}

// hostLoads is what a host told last.
type hostLoads struct {
	services []api.HostConnections
	at       time.Time
}

func (l *loads) end() {
	if l.stop != nil {
		l.stop()
	}
	*l = loads{}
}

// of is the load of a service on a host; false if it is not known, or too long ago.
func (l *loads) of(agent netip.AddrPort, at config.Endpoint) (api.HostConnections, time.Duration,
	bool) {
	told, known := l.told[agent]
	age := time.Since(told.at)
	if !known || age > loadLife {
		return api.HostConnections{}, 0, false
	}
	c, found := api.ConnectionsOf(told.services, at)
	return c, age, found
}

// followLoads makes the hosts of services that have an order those that are asked.
func (e *Room) followLoads() {
	agents := map[netip.AddrPort]struct{}{}
	for _, s := range e.list() {
		if !s.ordered(e.Node) {
			continue
		}
		for _, b := range s.Backends {
			if b.Agent.IsValid() {
				agents[b.Agent] = struct{}{}
			}
		}
	}
	l := &e.loads
	asked := slices.SortedFunc(maps.Keys(agents), netip.AddrPort.Compare)
	if slices.Equal(asked, l.agents) && (len(asked) == 0 || l.secret == e.Node.Secret) {
		return
	}
	told := l.told
	l.end()
	if len(asked) == 0 {
		return
	}
	l.agents, l.secret, l.told = asked, e.Node.Secret, map[netip.AddrPort]hostLoads{}
	for _, agent := range asked {
		if known, ok := told[agent]; ok {
			l.told[agent] = known
		}
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(e.Life)
	go e.askLoads(ctx, asked, e.Node.Secret)
}

// askLoads asks hosts again and again.
func (e *Room) askLoads(ctx context.Context, agents []netip.AddrPort, secret flow.Secret) {
	tick := time.NewTicker(max(loadInterval, time.Duration(len(agents))*loadSpacing))
	defer tick.Stop()
	for {
		told := loadsOf(ctx, agents, secret)
		_ = e.Do(ctx, func() { // else it is the end
			before := e.orderWarnings()
			maps.Copy(e.loads.told, told)
			e.reorder()
			if !slices.Equal(before, e.orderWarnings()) {
				e.Rewarn()
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// loadsOf asks hosts once. Who does not answer is left out.
func loadsOf(ctx context.Context, agents []netip.AddrPort,
	secret flow.Secret) map[netip.AddrPort]hostLoads {
	var asking sync.WaitGroup
	var mutex sync.Mutex
	told := map[netip.AddrPort]hostLoads{}
	turns := make(chan struct{}, loadsAtOnce)
	for _, agent := range agents {
		turns <- struct{}{}
		asking.Go(func() {
			defer func() { <-turns }()
			services, err := api.AskHostAll(ctx, secret, agent)
			if err != nil {
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			told[agent] = hostLoads{services, time.Now()}
		})
	}
	asking.Wait()
	return told
}
