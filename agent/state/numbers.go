package state

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"

	"sextant/config"
	"sextant/datapath"
	"sextant/lb/consistenthash"
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
	for endpoint, n := range numbers {
		known[endpoint] = n
	}
}

// TrustPins takes the numbers of what runs from the kernel: they count where the disk has others,
// or none.
func (s *Store) TrustPins(dir string) error {
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
	first := uint16(srv6.MaxGlobalCSID) + 1
	sids, err := datapath.PinnedSIDs(filepath.Join(dir, "edge"), first)
	if err != nil {
		return err
	}
	for i, sid := range sids {
		id := first + uint16(i)
		maps.DeleteFunc(s.Kept.SIDs, func(_ string, other uint16) bool { return other == id })
		s.Kept.SIDs[sid.String()] = id
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

// localIDs is how many ids are behind the global ones: 0xe000 to 0xffff.
const localIDs = 8192

// NumberSID returns the 16-bit id of a backend's SID: the compressed SID itself, or a local one
// that stands for a SID of another form.
func NumberSID(known map[string]uint16, block srv6.Block, sid netip.Addr) (uint16, error) {
	if ids, err := block.CSIDs(sid); err == nil && len(ids) == 1 && ids[0] <= srv6.MaxGlobalCSID {
		return uint16(ids[0]), nil
	}
	if id, ok := known[sid.String()]; ok {
		return id, nil
	}
	const first = uint16(srv6.MaxGlobalCSID) + 1
	var taken [localIDs]bool
	for _, id := range known {
		taken[id-first] = true
	}
	if free := slices.Index(taken[:], false); free >= 0 {
		known[sid.String()] = first + uint16(free)
		return known[sid.String()], nil
	}
	return 0, &config.Problem{Kind: config.ErrConflict,
		Text: fmt.Sprintf("%s is one of more than %d SIDs outside of the block %s at a time", sid,
			localIDs, block.Prefix()), Mend: "give some backends SIDs behind it"}
}

// KeyOfSID is what all nodes know the backend by that has an id here: 0 stands for the id itself,
// if it is the compressed SID. Local ids differ between nodes.
func KeyOfSID(id uint16, sid netip.Addr) uint64 {
	if srv6.CSID(id).Global() {
		return 0
	}
	return consistenthash.KeyOf(sid.As16())
}

// PruneSIDs forgets the local ids of SIDs that are not used any more, if so many more might not be
// numbered: SIDs of pods come and go for as long as a node runs.
func PruneSIDs(known map[string]uint16, more int, used func() map[netip.Addr]bool) {
	if len(known)+more <= localIDs {
		return
	}
	keep := used()
	maps.DeleteFunc(known, func(text string, _ uint16) bool {
		sid, err := netip.ParseAddr(text)
		return err != nil || !keep[sid]
	})
}

// SIDOf is the SID behind an id, as NumberSID gave it; the zero value: none is known.
func SIDOf(numbers map[string]uint16, n *config.Node, id uint16) netip.Addr {
	if id <= uint16(srv6.MaxGlobalCSID) {
		sid, err := n.Domain.Block.Carrier(srv6.CSID(id))
		if err != nil {
			return netip.Addr{}
		}
		return sid
	}
	for text, known := range numbers {
		if known == id {
			sid, _ := netip.ParseAddr(text) // the zero value if the file was tampered with
			return sid
		}
	}
	return netip.Addr{}
}
