package datapath

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/netip"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
)

// flowWays is how many flows share a set of the cache.
const flowWays = len(flowSet{}.Ways)

// flowSetSize is that of flowSet in bytes.
const flowSetSize = uint32(unsafe.Sizeof(flowSet{}))

// defaultRest is one step of the time that entries of the flow cache rest. Only whole steps are
// compared.
const defaultRest = 8 * time.Second

// FlowCache is an edge's memory of who took which connection. The zero value: none.
type FlowCache struct {
	SID     netip.Addr // End.LEARN, from which SYNs come, and to which hosts send the answers
	Entries int        // flows, of 8 bytes each; rounded up to a multiple of 4
	// how long an entry rests before another that was used meanwhile is preferred; 0: as long as is
	// usual
	Rest time.Duration
}

func (c FlowCache) sets() uint32 { return uint32((c.Entries + flowWays - 1) / flowWays) }

// settings rounds Rest down to a power of two of the kernel's ticks.
func (c FlowCache) settings() flowCacheSettings {
	ticks := uint64(cmp.Or(c.Rest, defaultRest).Seconds() * float64(jiffiesPerSecond()))
	return flowCacheSettings{SID: addressOf(c.SID), Sets: c.sets(),
		RestShift: uint32(bits.Len64(max(1, ticks)) - 1)}
}

// into puts the settings into an edge's object.
func (c FlowCache) into(spec *ebpf.CollectionSpec) error {
	spec.Maps["flows"].MaxEntries = max(1, c.sets())
	return spec.Variables["flow_cache"].Set(c.settings())
}

// cacheEventNames returns the names of enum cache_event by number.
var cacheEventNames = sync.OnceValue(func() []string {
	return enumNames("cache_event", "CACHE_",
		"CACHE_EVENT_COUNT")
})

// CacheEvents returns what the flow cache did for packets, in the order of enum cache_event;
// nothing if there is none.
func (e *Edge) CacheEvents() ([]Counter, error) {
	if e.config.FlowCache.Entries == 0 {
		return nil, nil
	}
	return e.readEnum("cache_events", cacheEventNames())
}

// CachedOwner returns the backend that the flow cache names for a flow's hash, 0 for none.
func (x *Explainer) CachedOwner(hash uint64) (uint16, error) {
	m := x.maps["flows"]
	var set flowSet
	if err := m.Lookup(uint32(uint64(uint32(hash))*uint64(m.MaxEntries())>>32), &set); err != nil {
		return 0, fmt.Errorf("look into the flow cache: %w", err)
	}
	for _, word := range set.Ways {
		if word>>32 == hash>>32 && ownerOf(word) != 0 {
			return ownerOf(word), nil
		}
	}
	return 0, nil
}

func ownerOf(word uint64) uint16 { return uint16(word >> 16) }

// copySets copies an array of as long values as a set of flows.
func copySets(to, from *ebpf.Map) error {
	return eachBatch(from, func(keys []uint32, sets []flowSet) error {
		_, err := to.BatchUpdate(keys, sets, nil)
		return err
	})
}
