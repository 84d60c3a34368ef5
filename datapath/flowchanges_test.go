package datapath

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// changing is a head-end with a socket to which changes come.
type changing struct {
	t       testing.TB
	program *Headend
	changes *FlowChanges
	in      *net.UDPConn
	out     net.Conn
	lists   []srpolicy.Header
	octets  [4096]byte
}

var changeKey = flow.Secret{3, 1, 4, 1, 5, 9, 2, 6}

func newChanging(t testing.TB) *changing {
	w := newWorld(t)
	must(t, exec.Command("ip", "link", "set", "lo", "up").Run())
	c := &changing{t: t, program: newTwoHeadends(t, w, Internal).program}
	var err error
	c.in, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
	must(t, err)
	t.Cleanup(func() { c.in.Close() })
	c.out, err = net.Dial("udp", c.in.LocalAddr().String())
	must(t, err)
	t.Cleanup(func() { c.out.Close() })
	c.changes, err = c.program.OpenFlowChanges(c.in, changeKey)
	must(t, err)
	t.Cleanup(c.changes.Close)
	for _, segments := range [][]string{{"fcbb:bb00:1:e::", "fcbb:bb00:6:f::"}, {"fcbb:bb00:6:f::"},
		{"fcbb:bb00:1:e::", "fcbb:bb00:1:e::", "fcbb:bb00:1:e::", "fcbb:bb00:1:e::",
			"fcbb:bb00:1:e::", "fcbb:bb00:6:f::"}, {"fcbb:bb00:2:e::", "fcbb:bb00:6:f::"}} {
		list := srpolicy.List{Reduced: true}
		for _, s := range segments {
			list.Segments = append(list.Segments, netip.MustParseAddr(s))
		}
		header, err := list.Header(c.program.Source())
		must(t, err)
		c.lists = append(c.lists, header)
	}
	return c
}

// sent has a datagram pass the filter.
func (c *changing) sent(datagram []byte) {
	c.t.Helper()
	_, err := c.out.Write(datagram)
	must(c.t, err)
	must(c.t, c.in.SetReadDeadline(time.Now().Add(10*time.Second)))
	n, err := c.in.Read(c.octets[:])
	must(c.t, err)
	if !bytes.Equal(c.octets[:n], datagram) {
		c.t.Fatalf("the agent gets %x of %x", c.octets[:n], datagram)
	}
}

// change is a datagram by what southbound.proto says, without its code.
func change(number uint64, t flow.Tuple, header srpolicy.Header, hold time.Duration) []byte {
	b := binary.BigEndian.AppendUint64(nil, number)
	source, destination := t.Src.As16(), t.Dst.As16()
	b = append(append(b, source[:]...), destination[:]...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, t.SrcPort), t.DstPort)
	b = append(b, t.Protocol, 0, 0, 0)
	if t.Src.Is4() {
		b[len(b)-3] = 1
	}
	b = append(binary.BigEndian.AppendUint32(b, uint32(hold.Milliseconds())), 0, 0, 0, 0)
	for _, s := range header.Segments() {
		b = append(b, s.AsSlice()...)
	}
	return append(b, make([]byte, 152-len(b))...)
}

func signed(key flow.Secret, b []byte) []byte {
	return binary.LittleEndian.AppendUint64(slices.Clone(b), flow.SipHash24(key, b))
}

// has fails unless the flows have these lists, and no other flow has one, and the filter has made
// the changes up to a number.
func (c *changing) has(made uint64, lists map[flow.Tuple]int) {
	c.t.Helper()
	flows, err := c.program.Flows()
	must(c.t, err)
	if len(flows) != len(lists) {
		c.t.Errorf("%d flows have paths, not %d: %v", len(flows), len(lists), flows)
	}
	for _, f := range flows {
		list, ok := lists[f.Flow]
		if !ok || !bytes.Equal(f.Header.Octets, c.lists[list].Octets) ||
			f.Left < 59*time.Minute || f.Left > time.Hour {
			c.t.Errorf("flow %v has %v for %v; want list %d for an hour", f.Flow,
				f.Header.Segments(), f.Left, list)
		}
	}
	number, err := c.changes.Made()
	must(c.t, err)
	if number != made {
		c.t.Errorf("the filter has made change %d, not %d", number, made)
	}
}

var (
	changedFlow = flow.Tuple{Src: netip.MustParseAddr("2001:db8::7"), SrcPort: 0x1234,
		Dst: netip.MustParseAddr("2001:db8:80::80"), DstPort: 443, Protocol: 6}
	changedFlow4 = flow.Tuple{Src: netip.MustParseAddr("192.0.2.1"), SrcPort: 0x1234,
		Dst: netip.MustParseAddr("198.51.100.2"), DstPort: 53, Protocol: 17}
)

// The filter of a socket gives a flow the list of the next change, as SetFlow does; it leaves the
// flows alone if it is not allowed, if the list is not known, and for what is repeated, early,
// altered anywhere, longer, shorter, too short-lived, or has another key.
func TestFlowChanges(t *testing.T) {
	c := newChanging(t)
	to := func(number uint64, flow flow.Tuple, list int) []byte {
		return change(number, flow, c.lists[list], time.Hour)
	}
	lists := map[flow.Tuple]int{}
	c.sent(signed(changeKey, to(1, changedFlow, 0)))
	c.has(0, lists)
	must(t, c.changes.Allow(0, time.Minute))
	c.sent(signed(changeKey, to(1, changedFlow, 0)))
	c.has(0, lists) // as the list is not known
	other := flow.Tuple{Src: changedFlow.Src, Dst: changedFlow.Dst, Protocol: 17}
	for i := range c.lists[:3] {
		other.SrcPort = uint16(i)
		must(t, c.program.SetFlow(other, c.lists[i], time.Hour))
		lists[other] = i
	}
	c.sent(signed(changeKey, to(1, changedFlow, 0)))
	lists[changedFlow] = 0
	c.has(1, lists)
	c.sent(signed(changeKey, to(2, changedFlow, 2)))
	lists[changedFlow] = 2
	c.has(2, lists)
	c.sent(signed(changeKey, to(3, changedFlow4, 1)))
	lists[changedFlow4] = 1
	c.has(3, lists)

	wrong := func(what string, datagram []byte) {
		t.Helper()
		c.sent(datagram)
		c.has(3, lists)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	wrong("repeated", signed(changeKey, to(1, changedFlow, 0)))
	wrong("repeated", signed(changeKey, to(3, changedFlow4, 0)))
	wrong("early", signed(changeKey, to(5, changedFlow, 0)))
	wrong("of another key", signed(flow.Secret{1}, to(4, changedFlow, 0)))
	wrong("short-lived", signed(changeKey, change(4, changedFlow, c.lists[0], time.Second)))
	wrong("without its list", signed(changeKey, to(4, changedFlow, 3)))
	next := signed(changeKey, to(4, changedFlow, 0))
	for bit := range 8 * len(next) {
		altered := slices.Clone(next)
		altered[bit/8] ^= 1 << (bit % 8)
		wrong("altered", altered)
	}
	for length := range next {
		wrong("cut", next[:length])
	}
	wrong("longer", append(slices.Clone(next), 0))

	must(t, c.changes.Deny())
	wrong("not allowed", next)
	must(t, c.changes.Allow(6, time.Minute))
	wrong("made by the agent", next)
	c.sent(signed(changeKey, to(7, changedFlow, 1)))
	lists[changedFlow] = 1
	c.has(7, lists)
	c.changes.Close()
	c.sent(signed(changeKey, to(8, changedFlow, 0)))
	flows, err := c.program.Flows()
	must(t, err)
	for _, f := range flows {
		if f.Flow == changedFlow && !bytes.Equal(f.Header.Octets, c.lists[1].Octets) {
			t.Error("a filter that is closed has made a change")
		}
	}
}

// A head-end that is loaded in place of another may give a list's place to another list: the filter
// of the one before finds lists that the new one has shown, in their places, and no others.
func TestFlowChangesOfEarlierHeadend(t *testing.T) {
	c := newChanging(t)
	must(t, c.program.pin())
	must(t, c.changes.Allow(0, time.Minute))
	must(t, c.program.SetFlow(changedFlow, c.lists[1], time.Hour))
	c.sent(signed(changeKey, change(1, changedFlow4, c.lists[1], time.Hour)))
	c.has(1, map[flow.Tuple]int{changedFlow: 1, changedFlow4: 1})

	config := c.program.config
	config.HopLimit--
	next, err := OpenHeadend(c.program.dir, config)
	must(t, err)
	t.Cleanup(next.Close)
	second := signed(changeKey, change(2, changedFlow4, c.lists[0], time.Hour))
	c.sent(signed(changeKey, change(2, changedFlow4, c.lists[1], time.Hour)))
	c.has(1, map[flow.Tuple]int{changedFlow: 1, changedFlow4: 1})
	list := srpolicy.List{Reduced: true, Segments: c.lists[0].Segments()}
	header, err := list.Header(next.Source())
	must(t, err)
	must(t, next.SetFlow(changedFlow, header, time.Hour))
	c.sent(second)
	flows, err := next.Flows()
	must(t, err)
	for _, f := range flows {
		if !bytes.Equal(f.Header.Octets, header.Octets) {
			t.Errorf("flow %v has %v, octets %x", f.Flow, f.Header.Segments(), f.Header.Octets)
		}
	}
	if made, err := c.changes.Made(); err != nil || made != 2 || len(flows) != 2 {
		t.Errorf("change %d is made, %v; %d flows have paths", made, err, len(flows))
	}
}

// A head-end whose kernel does not take the filter runs without, and says why.
func TestFlowChangesWithoutFilter(t *testing.T) {
	c := newChanging(t)
	spec, err := c.program.sideSpec(Internal)
	must(t, err)
	const unknown = 9999 // a function that no kernel has
	for i, instruction := range spec.Programs[flowChange].Instructions {
		if instruction.IsBuiltinCall() {
			spec.Programs[flowChange].Instructions[i].Constant = unknown
		}
	}
	c.program.probeChange(spec)
	_, err = c.program.OpenFlowChanges(c.in, changeKey)
	if err == nil || !strings.Contains(err.Error(), "unknown#9999") {
		t.Errorf("the socket has a filter, or no reason why not: %v", err)
	}
	must(t, c.program.SetFlow(changedFlow, c.lists[0], time.Hour))
	c.has(0, map[flow.Tuple]int{changedFlow: 0})
}

var _ = fuzzes(FuzzFlowChange, "flow_change")

// FuzzFlowChange gives the filter any datagram, with its code or without: either nothing changes,
// or the flow of the datagram has the list of its segments.
func FuzzFlowChange(f *testing.F) {
	c := newChanging(f)
	for _, header := range c.lists {
		must(f, c.program.SetFlow(changedFlow, header, time.Hour))
		f.Add(change(1, changedFlow, header, time.Hour), true)
	}
	f.Add(change(1, changedFlow4, c.lists[0], time.Hour), false)
	must(f, c.program.RemoveFlow(changedFlow))
	number := uint64(0)
	f.Fuzz(func(t *testing.T, b []byte, rightly bool) {
		if len(b) > 1000 {
			return
		}
		c.t = t
		if rightly {
			number++
			must(t, c.changes.Allow(number-1, time.Minute))
			if len(b) >= 8 {
				binary.BigEndian.PutUint64(b, number)
			}
			b = signed(changeKey, b)
		}
		c.sent(b)
		var key flowKey
		var path flowPath
		made, err := c.changes.Made()
		must(t, err)
		entries, n := c.program.maps["flow_paths"].Iterate(), 0
		for entries.Next(&key, &path) {
			n++
		}
		must(t, entries.Err())
		if made != number || n == 0 {
			if n != 0 {
				t.Fatalf("%x gives %d flows paths, and is not made", b, n)
			}
			return
		}
		wire := binary.LittleEndian.AppendUint16(nil, 0)
		wire = append(append(append(key.Source[:], key.Destination[:]...), key.Ports[:]...),
			append([]byte{key.Protocol, key.IPv4}, wire...)...)
		header := c.program.flows.headers[path.List]
		want := change(number, changedFlow, header, time.Hour)
		if n != 1 || !rightly || !bytes.Equal(wire[:38], b[8:46]) ||
			!bytes.Equal(want[56:], b[56:152]) {
			t.Fatalf("%x gives %d flows paths, %x list %v", b, n, wire, header.Segments())
		}
		must(t, c.program.maps["flow_paths"].Delete(key))
	})
}
