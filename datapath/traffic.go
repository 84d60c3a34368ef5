package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// ServiceTraffic is what an edge has forwarded for a service.
type ServiceTraffic struct {
	All      Traffic
	Backends []Traffic // offered first to the backends asked for, in their order
	Others   Traffic   // offered first to backends for which no counter was free
}

// ServiceTraffic returns what was forwarded for the service of index, and to those of its backends
// that have the ids. What All has beside Backends and Others went to backends that are not asked
// for.
func (e *Edge) ServiceTraffic(index uint32, ids ...uint16) (ServiceTraffic, error) {
	total, err := sumPerCPU(e.maps["service_traffic"], index, addWords[serviceCounters])
	t := ServiceTraffic{All: total.All, Others: total.Others, Backends: make([]Traffic, len(ids))}
	if err != nil {
		return t, fmt.Errorf("read traffic of service %d: %w", index, err)
	}
	m := e.maps["backend_traffic"]
	read := blockReader{m, m.MaxEntries() * countersBlock, map[uint32][]backendCounters{}}
	for i, id := range ids {
		if t.Backends[i], err = read.backend(index, id); err != nil {
			return t, fmt.Errorf("read traffic of backend %d of service %d: %w", id, index, err)
		}
	}
	return t, nil
}

// blockReader reads blocks of counters, each once: all CPUs' copies.
type blockReader struct {
	counters *ebpf.Map
	places   uint32 // counters in all
	known    map[uint32][]backendCounters
}

func (r blockReader) block(number uint32) ([]backendCounters, error) {
	if cpus, ok := r.known[number]; ok {
		return cpus, nil
	}
	var cpus []backendCounters
	err := r.counters.Lookup(number, &cpus)
	r.known[number] = cpus
	return cpus, err
}

// backend adds up a backend's counters, which each CPU may have at another place: the first free
// one at or behind the place that service and id name.
func (r blockReader) backend(index uint32, id uint16) (total Traffic, err error) {
	first := counterPlace(index, id) % r.places
	cpus, err := r.block(first / countersBlock)
	for cpu := range cpus {
		for i := range uint32(counterProbes) {
			place := (first + i) % r.places
			block, err := r.block(place / countersBlock)
			if err != nil {
				return total, err
			}
			c := block[cpu].Counters[place%countersBlock]
			if c.Owner == counterOwner(index, id) {
				addWords(&total, c.Traffic)
			}
			if c.Owner == 0 || c.Owner == counterOwner(index, id) {
				break
			}
		}
	}
	return total, err
}

// counterPlace is where a backend's counter is if that place was free, modulo the number of places.
func counterPlace(index uint32, id uint16) uint32 { return index*countersStep + uint32(id) }

func counterOwner(index uint32, id uint16) uint32 { return index<<16 | uint32(id) }
