package state

import (
	"fmt"
	"iter"
	"maps"
	"path/filepath"

	"sextant/config"
	"sextant/datapath"
	"sextant/packet/srv6"
)

// NumberServices gives each endpoint a number of the kernel's tables, from 1 and below most: the
// one it had, or else a free one. Fresh are those whose number was not theirs before. Endpoints
// that are gone keep theirs until they run out.
func NumberServices(known map[string]uint32, endpoints []config.Endpoint,
	most uint32) (numbers, fresh map[string]uint32, err error) {
	numbers, fresh = map[string]uint32{}, map[string]uint32{}
	taken := map[uint32]bool{}
	for _, e := range endpoints {
		if n, ok := known[e.String()]; ok && n < most {
			numbers[e.String()], taken[n] = n, true
		}
	}
	remembered := map[uint32]bool{}
	for _, n := range known {
		remembered[n] = true
	}
	next, stop := iter.Pull(freeNumbers(taken, remembered, most))
	defer stop()
	for _, e := range endpoints {
		if _, ok := numbers[e.String()]; ok {
			continue
		}
		n, ok := next()
		if !ok {
			return nil, nil, fmt.Errorf("%d services are more than the %d that a node can have",
				len(endpoints), most-1)
		}
		numbers[e.String()], fresh[e.String()], taken[n] = n, n, true
	}
	return numbers, fresh, nil
}

// freeNumbers yields the numbers that are not taken: first those that no endpoint ever had.
func freeNumbers(taken, remembered map[uint32]bool, most uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, had := range []bool{false, true} {
			for n := uint32(1); n < most; n++ {
				if !taken[n] && remembered[n] == had && !yield(n) {
					return
				}
			}
		}
	}
}

// Adopt makes numbers the known ones; endpoints whose number went to another are forgotten.
func Adopt(known, numbers map[string]uint32) {
	owner := map[uint32]string{}
	for endpoint, n := range numbers {
		owner[n] = endpoint
	}
	for endpoint, n := range known {
		if o, ok := owner[n]; ok && o != endpoint {
			delete(known, endpoint)
		}
	}
	maps.Copy(known, numbers)
}

// TrustPins takes the numbers of what runs from the kernel: they count where the disk has others,
// or none.
func (s *Store) TrustPins(dir string, block srv6.Block) error {
	for role, known := range map[string]map[string]uint32{
		"edge": s.Kept.EdgeServices, "host": s.Kept.HostServices,
	} {
		pinned, err := datapath.PinnedServices(filepath.Join(dir, role))
		if err != nil {
			return err
		}
		numbers := map[string]uint32{}
		for key, n := range pinned {
			numbers[endpointOf(key).String()] = n
		}
		Adopt(known, numbers)
	}
	sids, err := datapath.PinnedSIDs(filepath.Join(dir, "edge"))
	if err != nil {
		return err
	}
	for id, sid := range sids {
		if own, ok := compressed(block, sid); !ok || own != id {
			s.Kept.SIDs.set(sid, id)
		}
	}
	return nil
}

// ProtocolNumbers are the IP protocol numbers of the transports.
var ProtocolNumbers = map[config.Protocol]uint8{config.TCP: 6, config.UDP: 17}

// ServiceKey is how the data plane knows a service.
func ServiceKey(e config.Endpoint) datapath.ServiceKey {
	return datapath.ServiceKey{VIP: e.VIP, Port: e.Port, Protocol: ProtocolNumbers[e.Protocol]}
}

// endpointOf is the opposite of serviceKey.
func endpointOf(key datapath.ServiceKey) config.Endpoint {
	e := config.Endpoint{VIP: key.VIP, Port: key.Port}
	for protocol, number := range ProtocolNumbers {
		if number == key.Protocol {
			e.Protocol = protocol
		}
	}
	return e
}
