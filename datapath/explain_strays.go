package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// StrayExplainer explains what the programs do that take strays away. What is asked for in a VRF
// device is given to the program there, too, as if the first had led it there.
type StrayExplainer struct {
	*Explainer
	ask *ebpf.Program // vrf_ask, which is told by the packet's mark what stray_lead tells it
}

// StrayExplained is what the programs did with a frame.
type StrayExplained struct {
	Explained      // Taken: it was taken out of its outer headers
	Here      bool // its connection is in the VRF
	Stray     bool // its connection is not
	Returned  bool // its connection is not, and it has been a stray before
}

// Explainer opens one for the programs that run. Close it.
func (s *Strays) Explainer() (*StrayExplainer, error) {
	spec, err := s.spec()
	if err != nil {
		return nil, err
	}
	x, err := newExplainer(s.collection, spec, "stray", s.programs["stray"])
	if err != nil {
		return nil, err
	}
	ask, err := x.loadAsking()
	if err != nil {
		x.Close()
		return nil, fmt.Errorf("explain packets: %w", err)
	}
	return &StrayExplainer{x, ask}, nil
}

// Offsets in struct __sk_buff, and its size.
const (
	skbMark      = 8
	skbInterface = 40
	skbTCIndex   = 44
	skbSize      = 192
)

// loadAsking loads vrf_ask on the explainer's tables. It is told in tc_index that a packet is to be
// asked for, which the kernel's test mode can't set; so that one load reads the mark instead, and
// all else is the program that runs.
func (x *Explainer) loadAsking() (*ebpf.Program, error) {
	spec, err := loadVrfLookup()
	if err != nil {
		return nil, err
	}
	told := slices.IndexFunc(spec.Programs["vrf_ask"].Instructions, func(i asm.Instruction) bool {
		return i.OpCode == asm.LoadMemOp(asm.Word) && i.Offset == skbTCIndex
	})
	if told < 0 {
		return nil, errors.New("vrf_ask does not look at tc_index; this version can't explain it")
	}
	spec.Programs["vrf_ask"].Instructions[told].Offset = skbMark
	programs, err := x.load(spec)
	return programs["vrf_ask"], err
}

// Run gives the programs a frame that arrives on the interface of an index.
func (x *StrayExplainer) Run(ingress int, frame []byte) (StrayExplained, error) {
	before, err := x.continued()
	if err != nil {
		return StrayExplained{}, err
	}
	got, err := x.Explainer.Run(ingress, frame)
	const noteLength = 4 // struct stray_note
	if err == nil && len(got.note) == noteLength && binary.NativeEndian.Uint16(got.note[2:]) == 0 {
		err = x.askVRF(uint32(binary.NativeEndian.Uint16(got.note)), got.Frame)
	}
	if err != nil {
		return StrayExplained{}, err
	}
	after, err := x.continued()
	return StrayExplained{
		Explained: got, Here: after.Here > before.Here, Stray: after.Strays > before.Strays,
		Returned: after.Returned > before.Returned,
	}, err
}

// continued is what has been counted for all VRFs.
func (x *StrayExplainer) continued() (total StrayTraffic, err error) {
	values, err := allPerCPU[StrayTraffic](x.maps["stray_traffic"])
	if err != nil {
		return total, fmt.Errorf("read what VRFs have counted: %w", err)
	}
	for _, v := range values {
		total.Here += v.Here
		total.Strays += v.Strays
		total.Returned += v.Returned
	}
	return total, nil
}

// askVRF gives vrf_ask a decapsulated frame where it would be received: only from there the kernel
// finds the VRF's sockets.
func (x *StrayExplainer) askVRF(number uint32, frame []byte) error {
	var vrf strayVRF
	if err := x.maps["stray_vrfs"].Lookup(number, &vrf); err != nil {
		return fmt.Errorf("read VRF %d: %w", number, err)
	}
	context := make([]byte, skbSize)
	binary.NativeEndian.PutUint32(context[skbMark:], number+1)
	binary.NativeEndian.PutUint32(context[skbInterface:], vrf.Interface)
	if _, err := x.ask.Run(&ebpf.RunOptions{Data: shortened(frame), Context: context}); err != nil {
		return fmt.Errorf("run the program of VRF device %d: %w; is the device still there?",
			vrf.Interface, err)
	}
	return nil
}

// shortenedLength is how many bytes of a frame the kernel's test mode of TC programs takes in any
// case: it wants a frame in one page.
const shortenedLength = 2048

// shortened is a frame without the end of its payload, if it is long: what decides is in front.
func shortened(frame []byte) []byte {
	if len(frame) <= shortenedLength {
		return frame
	}
	frame = slices.Clone(frame[:shortenedLength])
	if ip := frame[minFrame:]; ip[0]>>4 == 4 {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	} else {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-outerLength))
	}
	return frame
}

// StraySID is a SID whose packets are looked at.
type StraySID struct {
	Prefix     netip.Prefix
	VRF        int // place in the configuration
	IPv4, IPv6 bool
}

// SIDs are those that the programs know now, in order.
func (s *Strays) SIDs() (list []StraySID) {
	for key, sid := range s.sids {
		list = append(list, StraySID{
			Prefix: netip.PrefixFrom(netip.AddrFrom16(key.Address), int(key.Bits)),
			VRF:    int(sid.VRF),
			IPv4:   sid.Families&strayIPv4 != 0, IPv6: sid.Families&strayIPv6 != 0,
		})
	}
	slices.SortFunc(list, func(a, b StraySID) int { return a.Prefix.Compare(b.Prefix) })
	return list
}
