package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"sextant/linux"
)

const (
	strayVRFsMax = 16  // STRAY_VRFS_MAX
	straySIDsMax = 256 // STRAY_SIDS_MAX
)

// What a SID decapsulates, enum stray_family.
const (
	strayIPv4 = 1
	strayIPv6 = 2
)

// StrayInterface is an interface of the SR domain, on which strays arrive.
type StrayInterface struct {
	Name string
	Mode Mode
}

// StrayVRF is a VRF whose strays are taken away. What it is made of may come, go and come back as
// another device of the same name.
type StrayVRF struct {
	Device    string // the VRF device; "": Namespace is the VRF
	Namespace string // path of a network namespace, like /run/netns/web
	// that lead into the namespace, at the kernel's hand; those of a VRF device are found
	SIDs   []netip.Prefix
	Except []netip.Prefix // SIDs of the device at which strays stay, like a stray's last offer
	Backup string         // the device on which strays are received
}

// Name names the VRF as its configuration does.
func (v StrayVRF) Name() string {
	if v.Device != "" {
		return v.Device
	}
	return v.Namespace
}

// StraysConfig is what the programs that take strays away are loaded for: a change loads them anew.
type StraysConfig struct {
	Infrastructure []netip.Prefix // at most 4
	Interfaces     []StrayInterface
	VRFs           []StrayVRF // at most 16
}

// Strays is the programs that take strays away, with their tables. Its methods are for one
// goroutine.
type Strays struct {
	*collection
	config   StraysConfig
	programs map[string]*ebpf.Program
	sids     map[straySIDKey]straySID // as the program knows them
}

// straysState is taken over from the predecessor.
var straysState = []string{"drops", "outcomes", "fragments"}

var _ = objectsOf("strays", loadVrfStray, loadVrfLookup)

// OpenStrays loads the programs and empty tables, beside whatever is running. Dir is the instance's
// directory on the bpf file system.
func OpenStrays(dir string, config StraysConfig) (*Strays, error) {
	if len(config.VRFs) > strayVRFsMax {
		return nil, fmt.Errorf("%d VRFs; at most %d can be used", len(config.VRFs), strayVRFsMax)
	}
	c, err := newCollection(dir, loadVrfStray)
	if err != nil {
		return nil, err
	}
	s := &Strays{collection: c, config: config, sids: map[straySIDKey]straySID{}}
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// spec is the program on the interfaces, with the settings.
func (s *Strays) spec() (*ebpf.CollectionSpec, error) {
	spec, err := loadVrfStray()
	if err != nil {
		return nil, err
	}
	return spec, spec.Variables["settings"].Set(
		straySettings{domain{Infrastructure: infrastructure{prefixesOf(s.config.Infrastructure)}}})
}

func (s *Strays) open() error {
	spec, err := s.spec()
	if err != nil {
		return err
	}
	state := straysState
	if s.numbersStand() {
		state = append(slices.Clone(state), "stray_traffic")
	}
	if s.programs, err = s.load(spec, state...); err != nil {
		return err
	}
	if spec, err = loadVrfLookup(); err != nil {
		return err
	}
	in, err := s.load(spec)
	if err != nil {
		return err
	}
	s.programs["vrf_ask"] = in["vrf_ask"]
	return nil
}

// numbersStand says whether the pinned counters are of the same VRFs.
func (s *Strays) numbersStand() bool {
	spec := &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(binary.Size(strayVRF{})),
		MaxEntries: strayVRFsMax}
	m := s.pinned(spec, "stray_vrfs")
	if m == nil {
		return false
	}
	defer m.Close()
	for number := range strayVRFsMax {
		var v strayVRF
		want := ""
		if number < len(s.config.VRFs) {
			want = s.config.VRFs[number].Name()
		}
		if m.Lookup(uint32(number), &v) != nil || v.Name != strayName(want) {
			return false
		}
	}
	return true
}

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything. What
// is no longer configured is released.
func (s *Strays) Commit() ([]Attachment, error) {
	if err := s.Follow(); err != nil {
		return nil, err
	}
	places := slices.Clone(s.places) // of VRFs
	for _, i := range s.config.Interfaces {
		places = append(places,
			place{name: "stray_lead", program: s.programs["stray_lead"], on: i.Name,
				kind: onArriving},
			place{name: "stray", program: s.programs["stray"], on: i.Name, mode: i.Mode})
	}
	return s.commit(places)
}

// Follow makes the tables what the machine's devices, namespaces and routes are now. A VRF with a
// fault is left to the kernel until that is mended: its strays are not taken away.
func (s *Strays) Follow() error {
	var faults []error
	sids := map[straySIDKey]straySID{}
	local, err := linux.LocalSIDs()
	if err != nil {
		return err
	}
	for number, v := range s.config.VRFs {
		entry, err := s.find(v)
		if err != nil {
			faults = append(faults, fmt.Errorf("strays of VRF %s: %w", v.Name(), err))
		}
		entry.Name = strayName(v.Name())
		if err := s.maps["stray_vrfs"].Put(uint32(number), entry.strayVRF); err != nil {
			return fmt.Errorf("set VRF %s: %w", v.Name(), err)
		}
		for _, prefix := range v.SIDs {
			sids[straySIDKeyOf(prefix)] = straySID{VRF: uint32(number),
				Families: strayIPv4 | strayIPv6}
		}
		for _, sid := range local {
			if v.Device != "" && sid.Table == entry.table && !slices.Contains(v.Except,
				sid.Prefix) {
				sids[straySIDKeyOf(sid.Prefix)] = straySID{VRF: uint32(number),
					Families: familiesOf(sid.Behavior)}
			}
		}
	}
	if err := replace(s.maps["stray_sids"], s.sids, sids); err != nil {
		return fmt.Errorf("set the SIDs of VRFs: %w; at most %d can be used", err, straySIDsMax)
	}
	s.sids = sids
	return errors.Join(faults...)
}

// Traffic returns what came for the VRF of a place in the configuration.
func (s *Strays) Traffic(number int) (StrayTraffic, error) {
	return sumPerCPU(s.maps["stray_traffic"], uint32(number), addWords[StrayTraffic])
}

func straySIDKeyOf(p netip.Prefix) straySIDKey {
	return straySIDKey{Bits: uint32(p.Bits()), Address: p.Masked().Addr().As16()}
}

// strayName is the end of a name, which differs where beginnings may not.
func strayName(name string) (out [16]byte) {
	copy(out[:], name[max(0, len(name)-len(out)):])
	return out
}
