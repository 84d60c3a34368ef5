package agent

import (
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/config"
	"sextant/packet/flow"
)

// selfChecks are a host's checks of the services that it serves itself: to the VIP on this machine,
// as its own sockets reach it.
type selfChecks struct {
	*core
	found    *discoveries
	monitor  *health.Monitor
	services map[string]*checked
}

func newSelfChecks(p parts) *selfChecks {
	k := &selfChecks{core: p.core, found: p.found, monitor: health.NewMonitor(p.life),
		services: map[string]*checked{}}
	p.failing = append(p.failing, k.failing)
	return k
}

// selfKey is how the state file names a service of the host among failing backends.
func selfKey(service string) health.Key { return health.Key{Service: service} }

// check makes the host's services those that are checked. What an earlier agent found to fail
// fails; if packets were forwarded on while no agent ran, all else is taken to work, so that a
// restart withdraws nothing.
func (k *selfChecks) check() {
	known := k.services
	k.services = map[string]*checked{}
	var jobs []health.Job
	if k.node.Host != nil {
		for _, s := range k.node.Host.Services {
			if s.Check == nil {
				continue
			}
			c := known[s.Name]
			if c == nil {
				c = &checked{since: time.Now()}
				switch {
				case slices.Contains(k.store.kept.Failing, selfKey(s.Name)):
					c.state.Status = health.Failing
				case !k.found.startup.fresh:
					c.state.Status = health.Healthy
				}
			}
			c.check = s.Check
			k.services[s.Name] = c
			jobs = append(jobs, health.Job{
				Check: s.Check, Seed: flow.SipHash13(k.node.Secret, []byte(k.node.Name+" "+s.Name)),
				Target: health.Target{Service: s.Name, Backend: k.node.Name,
					Address: s.Check.Target(s.Endpoint), SID: k.ownSID(s.VIP)},
			})
		}
	}
	k.monitor.Set(jobs)
}

// ownSID is at which SID the host serves a VIP.
func (k *selfChecks) ownSID(vip netip.Addr) netip.Addr {
	sid, ok := sidFor(k.node.Host.SIDs, vip)
	if !ok {
		return vip
	}
	return sid.Prefix.Addr()
}

// serves says whether the host's own checks let it announce a service.
func (k *selfChecks) serves(s config.HostService) bool {
	c := k.services[s.Name]
	return s.Check == nil || c == nil || c.state.Usable(rulesOf(s.Check))
}

// ended takes one result; routing is updated at once.
func (k *selfChecks) ended(r health.Result) {
	c := k.services[r.Service]
	if c == nil || !k.monitor.Current(r) || !c.take(r) {
		return
	}
	k.tell(api.Event{Service: r.Service, Backend: r.Backend, Status: c.state.Status.String(),
		Reason: reasonOf(r.Err)})
	k.core.keepFailing()
	k.announce()
}

// view is what the API tells of the host's check of a service; nil if it has none.
func (k *selfChecks) view(service string) *api.Health {
	if c := k.services[service]; c != nil {
		return c.view()
	}
	return nil
}

// failing adds the services that fail to the failing backends.
func (k *selfChecks) failing(list []health.Key) []health.Key {
	for name, c := range k.services {
		if c.state.Status == health.Failing {
			list = append(list, selfKey(name))
		}
	}
	return list
}
