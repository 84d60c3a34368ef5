package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"sextant/lb/acceptance"
	"sextant/packet/srv6"
)

// HostInterface is an interface that the host program is attached to.
type HostInterface struct {
	Name string
	Mode Mode
}

// LocalSID is a SID of this host: packets to the prefix meet the behaviour.
type LocalSID struct {
	Prefix   netip.Prefix
	Behavior srv6.Behavior
	Backup   netip.Addr // End.DT*.COND: the SID to which strays are sent
}

// HostConfig is what is compiled into the host programs, or fixed with them: a change loads them
// anew.
type HostConfig struct {
	Domain            // Source is that of strays and SYN-ACKs; the zero value if there are none
	SIDs   []LocalSID // at most 16
	// at most 4: of the edges' End.LEARN SIDs, by whose edges SYN-ACKs go
	Learners []netip.Prefix
	HMAC     HMACRule // the keys come by SetHMACKeys
	// bytes of the largest packet of a client that fits the SR domain behind the outer header
	TunnelMTU  int
	Refusal    time.Duration // how long a refused SYN stays refused
	Copies     time.Duration // how long copies of a packet are looked for; 0: 100 ms
	Cgroup     string        // whose sockets count as busy
	Interfaces []HostInterface
}

// Host is the host's programs with their tables. Its methods are for one goroutine.
type Host struct {
	*collection
	config   HostConfig
	programs map[string]*ebpf.Program
	quic     map[ServiceKey]bool
	hmacKeys map[uint32]hmacKey // by id
}

// hostState is taken over from the predecessor: counters, which run on, refusals, fragments, QUIC
// flows, who sent SYNs, copies, and what acceptance policies have learnt.
var hostState = []string{
	"drops", "outcomes", "served", "signals", "accept_states", "refusals", "reported",
	"fragments", "quic_flows", "askers", "copies_seen",
}

// openConnections are how many a service has, and which sockets these are. They are taken over
// together: else connections that end would be taken away from a number in which they are not, or
// not from one in which they are.
var openConnections = []string{"busy", "counted"}

// behaviors maps the behaviours to enum behavior of bpf/host.c.
var behaviors = map[srv6.Behavior]uint32{
	srv6.EndOFFER: 1,
	srv6.EndDT4:   2,
	srv6.EndDT6:   3,
	srv6.EndDT46:  4,

	srv6.EndDT4COND:  5,
	srv6.EndDT6COND:  6,
	srv6.EndDT46COND: 7,
}

var _ = objectsOf("host", loadHost)

// OpenHost loads the host's programs and tables, beside whatever is running. Dir is the instance's
// directory on the bpf file system. Set the services, then Commit.
func OpenHost(dir string, config HostConfig) (*Host, error) { return openHost(dir, config, false) }

// TakeOverHost is for a host what [TakeOverEdge] is for an edge.
func TakeOverHost(dir string, config HostConfig) (*Host, error) {
	return openHost(dir, config, true)
}

func openHost(dir string, config HostConfig, takes bool) (*Host, error) {
	c, err := newCollection(dir, loadHost)
	if err != nil {
		return nil, err
	}
	c.source = source{_HostBytes, fmt.Sprint(config.Interfaces, config.Cgroup)}
	if takes {
		c.takeOver()
	}
	h := &Host{collection: c, config: config, quic: map[ServiceKey]bool{}}
	if err := h.open(); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *Host) open() error {
	spec, err := h.spec()
	if err != nil {
		return err
	}
	h.programs, err = h.load(spec, h.kept(spec)...)
	return err
}

// kept is what the predecessor's is taken over. Open connections are counted anew if it saw the
// sockets of another cgroup, which the kernel tells nothing more of.
func (h *Host) kept(spec *ebpf.CollectionSpec) []string {
	if !seesSockets(h.dir, "host_sockets", h.config.Cgroup) {
		return hostState
	}
	for _, name := range openConnections {
		m := h.pinned(spec.Maps[name], name)
		if m == nil {
			return hostState
		}
		m.Close()
	}
	return slices.Concat(hostState, openConnections)
}

// spec is the object with the host's settings.
func (h *Host) spec() (*ebpf.CollectionSpec, error) {
	spec, err := loadHost()
	if err != nil {
		return nil, err
	}
	settings, err := h.config.settings()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables["learners"].Set(prefixesOf(h.config.Learners)); err != nil {
		return nil, err
	}
	if err := setHMACRule(spec, h.config.HMAC); err != nil {
		return nil, err
	}
	if err := spec.Variables["settings"].Set(settings); err != nil {
		return nil, err
	}
	if err := spec.Variables["copy_jiffies"].Set(
		jiffies(cmp.Or(h.config.Copies, defaultCopyTime))); err != nil {
		return nil, err
	}
	return spec, setJiffies(spec)
}

// defaultCopyTime is longer than the delays of paths differ, and shorter than TCP waits before it
// sends again.
const defaultCopyTime = 100 * time.Millisecond

// jiffies is a time in the kernel's ticks.
func jiffies(t time.Duration) uint32 { return uint32(t.Seconds() * float64(jiffiesPerSecond())) }

// tcpHeaders are the bytes of IP and TCP headers without options, which the maximum segment size
// leaves out.
const (
	tcpHeadersIPv4 = 40
	tcpHeadersIPv6 = 60
)

func (c HostConfig) settings() (hostSettings, error) {
	cookie, err := netnsCookie()
	if err != nil {
		return hostSettings{}, err
	}
	s := hostSettings{
		Domain:         c.Domain.settings(),
		NetnsCookie:    cookie,
		RefusalJiffies: jiffies(c.Refusal),
		MSSIPv4:        uint16(c.TunnelMTU - tcpHeadersIPv4),
		MSSIPv6:        uint16(c.TunnelMTU - tcpHeadersIPv6),
	}
	s.SIDs, err = localSIDs(c.SIDs)
	var prefixes []prefix
	for _, sid := range s.SIDs {
		prefixes = append(prefixes, sid.Prefix)
	}
	s.SIDsMask, s.SIDsCommon = common(prefixes)
	return s, err
}

// localSIDs returns the table of a host's SIDs, longest prefix first.
func localSIDs(sids []LocalSID) (table [sidsMax]localSID, err error) {
	if len(sids) > sidsMax {
		return table, fmt.Errorf("the host has %d SIDs; at most %d can be used", len(sids), sidsMax)
	}
	longestFirst := slices.SortedStableFunc(slices.Values(sids),
		func(a, b LocalSID) int { return b.Prefix.Bits() - a.Prefix.Bits() })
	for i, s := range longestFirst {
		table[i] = localSID{Prefix: prefixOf(s.Prefix), Behavior: behaviors[s.Behavior],
			Backup: addressOf(s.Backup)}
		if table[i].Behavior == 0 {
			return table, fmt.Errorf("set SID %s: a host has no behaviour %s", s.Prefix, s.Behavior)
		}
	}
	return table, nil
}

// SetService makes the host serve key by the policy, with counters of index, from 1 to
// MaxHostServices-1. What the policy has learnt under this index is kept if it is dynamic already.
func (h *Host) SetService(key ServiceKey, index uint32, p acceptance.Policy) error {
	policy := acceptPolicy{
		Kind: uint32(p.Kind), Threshold: p.Threshold, Window: p.Window, Workers: p.Workers,
		LowPermille: p.LowPermille, HighPermille: p.HighPermille, Cores: p.Cores, Power: p.Power(),
	}
	switch {
	case p.Queue:
		policy.Reported = loadAcceptQueue
	case p.Reported:
		policy.Reported = loadReported
	}
	state, err := h.AcceptState(index)
	if err != nil {
		return err
	}
	if p.Kind == acceptance.Dynamic && state.Threshold == 0 && state.Attempts == 0 ||
		state.Threshold > p.Workers {
		if err := h.setAcceptState(index, p.Initial()); err != nil {
			return err
		}
	}
	if err := h.putEntry("accept_policies", index, policy); err != nil {
		return fmt.Errorf("set acceptance policy of service %v: %w", key, err)
	}
	if err := h.putEntry("services", key.key(),
		service{Index: index, QUIC: truth(h.quic[key])}); err != nil {
		return fmt.Errorf("set service %v: %w", key, err)
	}
	return nil
}

func (h *Host) setAcceptState(index uint32, s acceptance.State) error {
	if h.found != nil {
		return fmt.Errorf("%w: service %d has learnt nothing", ErrDiffers, index)
	}
	state := acceptState{Threshold: s.Threshold, Attempts: s.Attempts, Accepted: s.Accepted,
		Usual: uint32(s.Usual), Pace: pace(s.Pace)}
	for i, level := range s.Levels {
		state.Levels[i] = uint32(level)
	}
	if err := h.maps["accept_states"].Put(index, state); err != nil {
		return fmt.Errorf("set acceptance state %d: %w", index, err)
	}
	return nil
}

// AcceptState returns what the service's policy has learnt.
func (h *Host) AcceptState(index uint32) (acceptance.State, error) {
	var s acceptState
	if err := h.maps["accept_states"].Lookup(index, &s); err != nil {
		return acceptance.State{}, fmt.Errorf("read acceptance state %d: %w", index, err)
	}
	out := acceptance.State{Threshold: s.Threshold, Attempts: s.Attempts, Accepted: s.Accepted,
		Usual: acceptance.Level(s.Usual), Pace: acceptance.Pace(s.Pace)}
	for i, level := range s.Levels {
		out.Levels[i] = acceptance.Level(level)
	}
	return out, nil
}

// Report says how busy a service is; only a service whose policy wants that looks at it.
func (h *Host) Report(index uint32, busy int) error {
	if err := h.maps["reported"].Put(index, int32(busy)); err != nil {
		return fmt.Errorf("report how busy service %d is: %w", index, err)
	}
	return nil
}

// Clear forgets what was counted and learnt under an index that another service had.
func (h *Host) Clear(index uint32) error {
	if h.found != nil {
		return fmt.Errorf("%w: service %d is new", ErrDiffers, index)
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return errors.Join(
		h.maps["served"].Put(index, make([]HostTraffic, cpus)),
		h.maps["signals"].Put(index, make([]HostSignals, cpus)),
		h.maps["busy"].Put(index, int32(0)),
		h.maps["reported"].Put(index, int32(0)),
		h.setAcceptState(index, acceptance.State{}),
	)
}

// DeleteService stops serving key, if it was.
func (h *Host) DeleteService(key ServiceKey) error {
	if err := h.maps["services"].Delete(key.key()); err != nil &&
		!errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete service %v: %w", key, err)
	}
	return nil
}

// Busy returns how busy a service is for its policy: its open connections, or what was reported.
func (h *Host) Busy(index uint32, p acceptance.Policy) (int, error) {
	name := "busy"
	if p.Reported {
		name = "reported"
	}
	var n int32
	if err := h.maps[name].Lookup(index, &n); err != nil {
		return 0, fmt.Errorf("read how busy service %d is: %w", index, err)
	}
	return int(n), nil
}

// Signals returns what clients of the service of index met with.
func (h *Host) Signals(index uint32) (HostSignals, error) {
	return sumPerCPU(h.maps["signals"], index, addWords[HostSignals])
}

// Traffic returns what was offered for the service; index 0 is what belonged to none.
func (h *Host) Traffic(index uint32) (HostTraffic, error) {
	return hostTraffic(h.maps["served"], index)
}

func hostTraffic(served *ebpf.Map, index uint32) (HostTraffic, error) {
	return sumPerCPU(served, index, addWords[HostTraffic])
}

// Confirm is for a host what [Edge.Confirm] is for an edge.
func (h *Host) Confirm() error { return h.confirm("services", "hmac_keys") }

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything.
// Interfaces that are no longer configured are released.
func (h *Host) Commit() ([]Attachment, error) {
	places := []place{{name: "host_sockets", program: h.programs["host_sockets"],
		on: h.config.Cgroup, kind: onSockets}}
	for _, i := range h.config.Interfaces {
		places = append(places,
			place{name: "host_leave", program: h.programs["host_leave"], on: i.Name,
				kind: onLeaving},
			place{name: "host", program: h.programs["host"], on: i.Name, mode: i.Mode,
				sends: true})
	}
	return h.commit(places)
}
