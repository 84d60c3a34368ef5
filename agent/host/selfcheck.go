package host

import (
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/role"
	"sextant/config"
	"sextant/packet/flow"
)

// selfChecks are a host's checks of the services that it serves itself: to the VIP on this machine,
// as its own sockets reach it.
type selfChecks struct {
	*role.Core
	found    *role.Discoveries
	monitor  *health.Monitor
	services map[string]*role.Checked
	unmade   role.Unmade
}

func newSelfChecks(p role.Parts) *selfChecks {
	k := &selfChecks{Core: p.Core, found: p.Found, monitor: health.NewMonitor(p.Life),
		services: map[string]*role.Checked{}, unmade: role.Unmade{Log: p.Log}}
	p.Failing = append(p.Failing, k.failing)
	return k
}

// selfKey is how the state file names a service of the host among failing backends.
func selfKey(service string) health.Key { return health.Key{Service: service} }

// check makes the host's services those that are checked. What an earlier agent found to fail
// fails; if packets were forwarded on while no agent ran, all else is taken to work, so that a
// restart withdraws nothing.
func (k *selfChecks) check() {
	known := k.services
	k.services = map[string]*role.Checked{}
	var jobs []health.Job
	if k.Node.Host != nil {
		for _, s := range k.Node.Host.Services {
			if s.Check == nil {
				continue
			}
			c := known[s.Name]
			if c == nil {
				c = &role.Checked{Since: time.Now()}
				switch {
				case slices.Contains(k.Store.Kept.Failing, selfKey(s.Name)):
					c.State.Status = health.Failing
				case !k.found.Startup.Fresh:
					c.State.Status = health.Healthy
				}
			}
			c.Check = s.Check
			k.services[s.Name] = c
			jobs = append(jobs, health.Job{
				Check: s.Check, Seed: flow.SipHash13(k.Node.Secret, []byte(k.Node.Name+" "+s.Name)),
				Target: health.Target{Service: s.Name, Backend: k.Node.Name,
					Address: s.Check.Target(s.Endpoint), SID: k.ownSID(s.VIP)},
			})
		}
	}
	k.monitor.Set(jobs)
}

// ownSID is at which SID the host serves a VIP.
func (k *selfChecks) ownSID(vip netip.Addr) netip.Addr {
	sid, ok := sidFor(k.Node.Host.SIDs, vip)
	if !ok {
		return vip
	}
	return sid.Prefix.Addr()
}

// serves says whether the host's own checks let it announce a service.
func (k *selfChecks) serves(s config.HostService) bool {
	c := k.services[s.Name]
	return s.Check == nil || c == nil || c.State.Usable(role.RulesOf(s.Check))
}

// ended takes results; routing is updated at once.
func (k *selfChecks) ended(list []health.Result) {
	changed := false
	for _, r := range list {
		c := k.services[r.Service]
		if c == nil || !k.monitor.Current(r) || k.unmade.Unmade(r) || !c.Take(r) {
			continue
		}
		changed = true
		k.Tell(api.Event{Service: r.Service, Backend: r.Backend, Status: c.State.Status.String(),
			Reason: role.ReasonOf(r.Err)})
	}
	if changed {
		k.Core.KeepFailing()
		k.Announce()
	}
}

// view is what the API tells of the host's check of a service; nil if it has none.
func (k *selfChecks) view(service string) *api.Health {
	if c := k.services[service]; c != nil {
		return c.View()
	}
	return nil
}

// failing adds the services that fail to the failing backends.
func (k *selfChecks) failing(list []health.Key) []health.Key {
	for name, c := range k.services {
		if c.State.Status == health.Failing {
			list = append(list, selfKey(name))
		}
	}
	return list
}
