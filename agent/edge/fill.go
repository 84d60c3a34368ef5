package edge

import (
	"slices"

	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// filling is a service that the program is to have, in place of the one before; nil: of none.
type filling struct{ s, before *Service }

// led reports whether the entry is to lead packets by other paths.
func (f filling) led() bool {
	if f.before == nil {
		return f.s.Paths.to != nil
	}
	return !f.before.Paths.equal(f.s.Paths)
}

// differs reports whether the program is to have anything else than before.
func (f filling) differs() bool {
	s, before := f.s, f.before
	return before == nil || f.led() || before.copied() != s.copied() ||
		before.Generation != s.Generation || before.former != s.former || f.limited() ||
		!slices.EqualFunc(before.QUIC.Configs, s.QUIC.Configs, config.QUIC.Equal)
}

// limited reports whether new connections are limited otherwise.
func (f filling) limited() bool {
	return f.before == nil || f.before.NewConnections != f.s.NewConnections
}

// fillServices sets chains before the services that lead to them, so that no packet meets a service
// without chains: those of all services together. Of new services, fillNew has.
func (e *Role) fillServices(before *Role) error {
	var all []filling
	var chains []datapath.ServiceChains
	for _, i := range e.placesSince(before) {
		f := filling{&e.Services[i], before.service(e.Services[i].Endpoint)}
		if !f.differs() {
			continue
		}
		all = append(all, f)
		if err := e.fillSettings(f); err != nil {
			return err
		}
		chains = append(chains, e.chainsToFill(f)...)
	}
	if _, err := e.Program.ChangeChains(chains); err != nil {
		return err
	}
	for _, f := range all {
		if err := e.fillEntry(f); err != nil {
			return err
		}
	}
	return nil
}

// fillSettings sets what chains, and the entry of the service, come behind.
func (e *Role) fillSettings(f filling) error {
	if f.limited() {
		if err := e.Program.LimitNewConnections(f.s.Index, f.s.NewConnections.Rate,
			f.s.NewConnections.Burst); err != nil {
			return err
		}
	}
	if err := e.setQUIC(f.s); err != nil || f.before == nil {
		return err
	}
	return e.setSIDs(f.s.Backends, f.s.Members, f.s.pastSIDs)
}

// chainsToFill are the chains of the service, and its former ones, as far as the program has
// others.
func (e *Role) chainsToFill(f filling) (list []datapath.ServiceChains) {
	var former *pool.Generation
	if f.before != nil {
		former = f.before.former
	}
	switch {
	case former == f.s.former:
	case f.s.former == nil:
		e.Program.ForgetFormer(f.s.Index)
	default:
		list = append(list, datapath.FormerChains(f.s.Index, f.s.former))
	}
	if f.before != nil && f.before.Generation != f.s.Generation {
		list = append(list, datapath.ServiceChains{Index: f.s.Index, Generation: f.s.Generation})
	}
	return list
}

// fillEntry brings the service's settings into force.
func (e *Role) fillEntry(f filling) error {
	if f.led() {
		if err := e.setPaths(f.s.Index, f.s.Paths); err != nil {
			return err
		}
	}
	e.Program.SetCopies(f.s.Index, f.s.copied())
	return e.Program.SetService(f.s.Key, f.s.Index, f.s.Buckets)
}
