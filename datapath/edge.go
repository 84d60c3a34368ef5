package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"sextant/config"
	"sextant/datapath/model"
	"sextant/packet/srv6"
)

// Side says what lies behind an interface of an edge or a head-end (enum side).
type Side = model.Side

// The sides of an interface.
const (
	External, Internal, Mixed = model.External, model.Internal, model.Mixed
)

// Encapsulation is how a chain is written into the outer packet (enum encapsulation).
type Encapsulation = model.Encapsulation

// The encapsulations.
const (
	Carrier    = model.EncapsulationCarrier    // ids in the destination address, RFC 9800
	SRH        = model.EncapsulationSRH        // all SIDs in a segment routing header, RFC 8754
	SRHReduced = model.EncapsulationSRHReduced // without the first, RFC 8986 section 5.2
)

// EdgeInterface is an interface that the edge program is attached to.
type EdgeInterface struct {
	Name string
	Side Side
	Mode Mode
}

// defaultAnswerRate is how many messages of a kind (echo replies, Packet Too Big) an edge or a
// head-end sends per
// second and CPU at most, 50 of them at once: as net.ipv4.icmp_msgs_per_sec and icmp_msgs_burst.
const defaultAnswerRate = 1000

// setAnswerRate puts a rate per second and CPU into an object, 0: the default; a twentieth of it
// may come at once.
func setAnswerRate(spec *ebpf.CollectionSpec, rate int) error {
	rate = cmp.Or(rate, defaultAnswerRate)
	return spec.Variables["answer_limit"].Set(limitOf(rate, max(1, rate/20)))
}

// EdgeConfig is what is compiled into the edge program: a change loads it anew.
type EdgeConfig struct {
	Domain
	config.EdgeOuter
	Encapsulation Encapsulation
	Shadow        netip.Addr // the SID to which hosts send strays; the zero value: none
	// behind a backend's SID, where the backend delivers whatever it knows
	LastOffer srv6.CSID
	// each SRH, with the key that SetSigningKey gives; Encapsulation is not Carrier then
	Signs      bool
	AnswerRate int // ICMP messages of a kind per second and CPU at most; 0: 1000
	FlowCache  FlowCache
	Former     FormerFlows
	Capacity   Capacity
	Paths      bool // some service has paths to its backends
	Copies     bool // some service sends packets over two of them
	Interfaces []EdgeInterface
}

// ServiceKey names a service: an address, a port (0: any) and an IP protocol.
type ServiceKey struct {
	VIP      netip.Addr
	Port     uint16
	Protocol uint8
}

func (k ServiceKey) key() serviceKey {
	key := serviceKey{VIP: addressOf(k.VIP), Port: bigEndian(k.Port), Protocol: k.Protocol}
	if k.VIP.Is4() {
		key.IPv4 = 1
	}
	return key
}

// Edge is the edge program with its tables. Its methods are for one goroutine.
type Edge struct {
	*collection
	config   EdgeConfig
	programs map[Side]*ebpf.Program
	blocks   *chainBlocks
	chains   map[uint32]*tablePair  // by the service's index; former ones by formerTables above it
	buckets  map[uint32]int         // by the service's index, as SetService says
	entries  map[serviceKey]service // as the program has them
	keys     map[uint32][]serviceKey
	// entries of programs that are taken over, by index; nil: they were not read yet
	claimed map[uint32]service
	sids    map[uint16]netip.Addr // as the program knows them
	quic    map[uint32]quicTables // by the service's index
	limited map[uint32]bool       // likewise: new connections
	paths   pathTable
	copies  map[uint32]Copies // likewise
	former  map[uint32]int    // likewise: buckets of the former table
	copier  *ebpf.Program     // sends the second copies; nil: there are none
	loop    loop              // through which they go
	// Await waits for what the kernel takes long for, some 10 ms: a table that is replaced or taken
	// away, until no packet under way looks at it. Nil: the caller does it itself.
	Await func(slow func() error) error
}

func (e *Edge) await(slow func() error) error {
	if e.Await == nil {
		return slow()
	}
	return e.Await(slow)
}

// edgeState is taken over from the predecessor: counters, which run on, fragments, and the flow
// cache if it is as large.
var edgeState = []string{"drops", "outcomes", "service_traffic", "backend_traffic", "openings",
	"fragments", "flows", "cache_events"}

// LacksLoop reports whether copies have nowhere to go: the loop is not the one that the programs
// were loaded for.
func (e *Edge) LacksLoop() bool { return e.copier != nil && !e.loop.isThere(copiesLoop) }

// RaiseLoop brings the loop of copies up if an end was taken down, and reports whether one was.
func (e *Edge) RaiseLoop() (raised bool, err error) {
	if e.copier == nil {
		return false, nil
	}
	return e.loop.raise(copiesLoop)
}

var _ = objectsOf("edge", loadEdge)

// OpenEdge loads the edge program and empty tables, beside whatever is running. Dir is the
// instance's directory on the bpf file system. Fill the tables, then Commit.
func OpenEdge(dir string, config EdgeConfig) (*Edge, error) { return openEdge(dir, config, false) }

// TakeOverEdge is OpenEdge with the programs and tables that an earlier agent left in dir, if they
// are what would be loaded; else the error is ErrDiffers. Fill the tables: instead of being written
// they are compared, and what is not as it should be is ErrDiffers. [Edge.Confirm] ends that.
func TakeOverEdge(dir string, config EdgeConfig) (*Edge, error) {
	return openEdge(dir, config, true)
}

func openEdge(dir string, config EdgeConfig, takes bool) (*Edge, error) {
	c, err := newCollection(dir, loadEdge)
	if err != nil {
		return nil, err
	}
	c.source = source{_EdgeBytes, fmt.Sprint(config.Interfaces)}
	if takes {
		c.takeOver()
	}
	e := &Edge{
		collection: c, config: config, programs: map[Side]*ebpf.Program{},
		chains: map[uint32]*tablePair{}, sids: map[uint16]netip.Addr{},
		quic: map[uint32]quicTables{}, limited: map[uint32]bool{}, buckets: map[uint32]int{},
		entries: map[serviceKey]service{}, keys: map[uint32][]serviceKey{},
		former: map[uint32]int{}, copies: map[uint32]Copies{},
	}
	if config.Copies {
		if e.loop, err = openLoop(copiesLoop); err != nil {
			e.close()
			return nil, err
		}
	}
	for _, i := range config.Interfaces {
		if err := e.loadSide(i.Side); err != nil {
			e.close()
			return nil, err
		}
	}
	return e, nil
}

func (e *Edge) loadSide(side Side) error {
	if e.programs[side] != nil {
		return nil
	}
	spec, err := e.spec(side)
	if err != nil {
		return err
	}
	programs, err := e.load(spec, edgeState...)
	if err != nil {
		return err
	}
	e.programs[side] = programs["edge"]
	if e.paths.array == nil {
		if err := e.mapPaths(); err != nil {
			return err
		}
	}
	if e.blocks == nil {
		e.blocks = newChainBlocks(e.maps["tables"], e.config.Capacity.block(), e.await)
	}
	if e.config.Copies {
		e.copier = programs["edge_copy"]
	}
	return nil
}

// spec is the object with the settings of a side.
func (e *Edge) spec(side Side) (*ebpf.CollectionSpec, error) {
	spec, err := loadEdge()
	if err != nil {
		return nil, err
	}
	if err := setAnswerRate(spec, e.config.AnswerRate); err != nil {
		return nil, err
	}
	if err := e.config.FlowCache.into(spec); err != nil {
		return nil, err
	}
	if err := setHMACRule(spec, HMACRule(truth(e.config.Signs))); err != nil {
		return nil, err
	}
	if err := spec.Variables["aes_tables"].Set(newAESTables()); err != nil {
		return nil, err
	}
	if err := e.config.Capacity.into(spec); err != nil {
		return nil, err
	}
	if err := e.config.Former.into(spec); err != nil {
		return nil, err
	}
	if err := spec.Variables["has_paths"].Set(e.config.Paths); err != nil {
		return nil, err
	}
	if !e.config.Copies {
		delete(spec.Programs, "edge_copy")
	}
	if err := spec.Variables["copy_loop"].Set(e.loop.ofCopies()); err != nil {
		return nil, err
	}
	if err := spec.Variables["settings"].Set(e.config.settings(side)); err != nil {
		return nil, err
	}
	var outer edgeOuter
	setByName(&outer, e.config.EdgeOuter)
	if err := spec.Variables["outer_settings"].Set(outer); err != nil {
		return nil, err
	}
	return spec, setJiffies(spec)
}

func (c EdgeConfig) settings(side Side) edgeSettings {
	mask, inside := c.Domain.settings().common()
	return edgeSettings{
		Domain:        c.Domain.settings(),
		Encapsulation: uint8(c.Encapsulation),
		Shadow:        addressOf(c.Shadow),
		LastOffer:     bigEndian(uint16(c.LastOffer)),
		Side:          uint8(side),
		InsideMask:    mask,
		Inside:        inside,
	}
}

// SetService points a service's packets at the chains and counters of index, from 0 to
// MaxServices-1, whose table has so many buckets, and brings into force what [Edge.SetQUIC],
// [Edge.SetPaths], [Edge.SetCopies], [Edge.LimitNewConnections] and [FormerChains] say
// about that index.
func (e *Edge) SetService(key ServiceKey, index uint32, buckets int) error {
	e.buckets[index] = buckets
	s, err := e.entryOf(index)
	if err == nil {
		err = e.putEntry("services", key.key(), s)
	}
	if err != nil {
		return fmt.Errorf("set service %v: %w", key, err)
	}
	e.forgetKey(key.key())
	e.entries[key.key()], e.keys[index] = s, append(e.keys[index], key.key())
	vip := ServiceKey{VIP: key.VIP}
	if err := e.putEntry("services", vip.key(), service{}); err != nil {
		return fmt.Errorf("mark %s as a VIP: %w", key.VIP, err)
	}
	if e.found != nil {
		return nil
	}
	if err := e.ForgetNextHops(); err != nil { // and the services that CPUs have cached
		return err
	}
	e.paths.came(index)
	return nil
}

// entryOf is the entry that a service is to have.
func (e *Edge) entryOf(index uint32) (service, error) {
	s := service{
		Index: index, QUIC: truth(len(e.quic[index].configs) > 0),
		Limited: uint8(truth(e.limited[index])), Paths: e.copies[index].bits(),
	}
	if led := e.paths.coming(index); led != nil {
		s.Paths, s.PathsAt = s.Paths|hasPaths, led.at
	}
	if t := e.live(index); t != nil {
		if int(t.buckets) != e.buckets[index] {
			return s, fmt.Errorf("its table has %d buckets, not %d", t.buckets, e.buckets[index])
		}
		s.setTable(t.tablePlace)
	}
	if t := e.live(formerTables + index); t != nil && e.former[index] > 0 {
		s.setFormerTable(t.tablePlace)
	}
	return s, nil
}

// forgetKey forgets to which service a key leads.
func (e *Edge) forgetKey(key serviceKey) {
	s, known := e.entries[key]
	if !known {
		return
	}
	delete(e.entries, key)
	e.keys[s.Index] = slices.DeleteFunc(e.keys[s.Index], func(k serviceKey) bool {
		return k == key
	})
	if len(e.keys[s.Index]) == 0 {
		delete(e.keys, s.Index)
	}
}

// LimitNewConnections lets at most rate new TCP connections per second to the service of index, and
// burst at once, from the next [Edge.SetService] on. A rate of 0 lets as many as come.
func (e *Edge) LimitNewConnections(index uint32, rate, burst int) error {
	e.limited[index] = rate > 0
	if rate <= 0 {
		return nil
	}
	var entry any = newConnections{Limit: limitOf(rate, burst)}
	if e.found != nil {
		entry = limitOf(rate, burst)
	}
	if err := e.putEntry("new_connections", index, entry); err != nil {
		return fmt.Errorf("limit new connections of service %d: %w", index, err)
	}
	return nil
}

// Openings returns how many new connections of the service of index its limit let through, and how
// many not. Without a limit nothing is counted.
func (e *Edge) Openings(index uint32) (Openings, error) {
	return sumPerCPU(e.maps["openings"], index, addWords[Openings])
}

// DeleteService stops serving key, if it was. The last service of a VIP takes the VIP along.
func (e *Edge) DeleteService(key ServiceKey, lastOfVIP bool) error {
	if lastOfVIP {
		vip := ServiceKey{VIP: key.VIP}
		if err := e.maps["services"].Delete(vip.key()); err != nil &&
			!errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("unmark %s as a VIP: %w", key.VIP, err)
		}
	}
	if err := e.maps["services"].Delete(key.key()); err != nil &&
		!errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete service %v: %w", key, err)
	}
	e.forgetKey(key.key())
	return e.ForgetNextHops() // and the services that CPUs have cached
}

// SetSID tells which SID stands behind an id. The carrier encapsulation needs none.
func (e *Edge) SetSID(id uint16, sid netip.Addr) error {
	if e.sids[id] == sid {
		return nil
	}
	if err := e.putEntry("sids", uint32(id), addressOf(sid)); err != nil {
		return fmt.Errorf("set SID %s: %w", sid, err)
	}
	e.sids[id] = sid
	return nil
}

// Confirm ends the comparison of an edge that was taken over: from now on it is written to.
// ErrDiffers: its tables have more than was filled in.
func (e *Edge) Confirm() error {
	if err := e.confirm("services", "quic_servers", "quic_configs"); err != nil {
		return err
	}
	e.claimed = nil
	if err := e.blocks.trim(); err != nil {
		return err
	}
	if err := e.makeSpares(slices.Collect(maps.Values(e.chains))); err != nil {
		return err
	}
	clear(e.paths.array) // services that have none were compared
	return e.forgetSIDs()
}

// forgetSIDs removes those that stand for ids which no backend has any more, as far as
// [PinnedSIDs] reads.
func (e *Edge) forgetSIDs() error {
	table := e.maps["sids"]
	for id := uint32(srv6.MaxGlobalCSID) + 1; id < table.MaxEntries(); id++ {
		var sid address
		if err := table.Lookup(id, &sid); err != nil || sid == (address{}) {
			return err
		}
		if _, used := e.sids[uint16(id)]; used {
			continue
		}
		if err := table.Put(id, address{}); err != nil {
			return err
		}
	}
	return nil
}

// Commit attaches the programs to their interfaces, replacing what an earlier agent attached, and
// pins everything. Interfaces that are no longer configured are released.
func (e *Edge) Commit() ([]Attachment, error) {
	if err := e.carryCounters(); err != nil {
		return nil, err
	}
	// An agent whose programs cached no services may have been here meanwhile.
	if err := e.ForgetNextHops(); err != nil {
		return nil, err
	}
	var places []place
	for _, i := range e.config.Interfaces {
		if e.copier != nil {
			places = append(places, place{name: "edge_copy", program: e.copier, on: i.Name,
				kind: onArriving})
		}
		places = append(places, place{
			name: "edge", program: e.programs[i.Side], on: i.Name, mode: i.Mode, side: i.Side,
			sends: true,
		})
	}
	attached, err := e.commit(places)
	if err != nil || e.config.Copies {
		return attached, err
	}
	return attached, removeLoop(copiesLoop)
}

// Close releases the kernel objects; packets are forwarded on.
func (e *Edge) Close() {
	e.chains = nil
	e.blocks.close()
	e.unmapPaths()
	e.close()
}
