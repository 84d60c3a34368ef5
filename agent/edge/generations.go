package edge

import (
	"errors"
	"fmt"
	"sync"

	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// generationsAtOnce is of how many services the previous chains are held in memory.
const generationsAtOnce = 16

// someChains makes the generations of some services, on all processors.
func (e *Room) someChains(
	services []*Service, n *config.Node, pinned *datapath.PinnedTables,
) error {
	found := make([]datapath.MarkedChains, len(services))
	if e.Node == nil {
		if err := eachAtOnce(services, func(i int, s *Service) (err error) {
			found[i], err = pinned.Chains(s.Index)
			return err
		}); err != nil {
			return err
		}
	}
	makers := make([]func() (*pool.Generation, error), len(services))
	for i := range services {
		var err error
		if makers[i], err = e.chains(services[i], n, found[i]); err != nil {
			return fmt.Errorf("service %s: %w", services[i].Name, err)
		}
	}
	return eachAtOnce(services, func(i int, s *Service) error {
		g, err := makers[i]()
		if err == nil {
			s.Generation = g.Ordered(s.order)
		}
		return err
	})
}

// eachAtOnce does something for services, on all processors.
func eachAtOnce(services []*Service, do func(i int, s *Service) error) error {
	var doing sync.WaitGroup
	failures := make([]error, len(services))
	for i, s := range services {
		doing.Go(func() {
			if err := do(i, s); err != nil {
				failures[i] = fmt.Errorf("service %s: %w", s.Name, err)
			}
		})
	}
	doing.Wait()
	return errors.Join(failures...)
}
