package datapath

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"

	"sextant/datapath/packettest"
	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// ofLinks are addresses that no router may send on, by RFC 6890 and RFC 4291 sections 2.5 and 2.7.
var ofLinks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("::ffff:0:0/96"),
	netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// isOfLink is the oracle.
func isOfLink(a netip.Addr) bool {
	if a.Is4In6() { // netip takes it for IPv4
		return true
	}
	return slices.ContainsFunc(ofLinks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// borders are the first and last addresses of ofLinks and those beside them, of a family.
func borders(ipv4 bool) (all []netip.Addr) {
	for _, p := range ofLinks {
		if p.Addr().Is4() != ipv4 {
			continue
		}
		last := p.Addr().AsSlice()
		for bit := p.Bits(); bit < p.Addr().BitLen(); bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
		}
		end, _ := netip.AddrFromSlice(last)
		for _, a := range []netip.Addr{p.Addr().Prev(), p.Addr(), end, end.Next()} {
			isCompatible := a.IsValid() && !ipv4 && [8]byte(a.AsSlice()) == [8]byte{}
			if a.IsValid() && (!isCompatible || isOfLink(a)) { // the rest of ::/64 is nobody's
				all = append(all, a)
			}
		}
	}
	return all
}

// steerAll gives the head-end one rule, for all.
func steerAll(t testing.TB, ends twoHeadends) {
	t.Helper()
	lists := []srpolicy.List{{Segments: []netip.Addr{netip.MustParseAddr("fcbb:bb00:1:e::")}}}
	path := srpolicy.CandidatePath{Name: "only", Action: srpolicy.Path, Lists: lists}
	table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: "all"}},
		[]srpolicy.Policy{{Name: "all", Paths: []srpolicy.CandidatePath{path}}},
		ends.program.Source(), nil)
	must(t, err)
	must(t, ends.program.SetTable(table))
	ends.model.Table = table
}

// linkPacket is a packet between any two addresses of a family, and whether it is neighbour
// discovery.
func linkPacket(t *testing.T, random *rand.Rand, ipv4 bool) (ip []byte, tuple flow.Tuple,
	discovery bool) {
	hosts := []netip.Addr{netip.MustParseAddr("2001:db8:c1::7"),
		netip.MustParseAddr("2001:db8:80::80"), netip.MustParseAddr("64:ff9b::1")}
	if ipv4 {
		hosts = []netip.Addr{netip.MustParseAddr("192.0.2.7"),
			netip.MustParseAddr("198.51.100.80")}
	}
	some := func() netip.Addr {
		if edges := borders(ipv4); random.IntN(2) == 0 {
			return edges[random.IntN(len(edges))]
		}
		return hosts[random.IntN(len(hosts))]
	}
	p := packettest.Packet{Src: some(), Dst: some(), SrcPort: 546, DstPort: 547, HopLimit: 255,
		Protocol: layers.IPProtocolUDP, Payload: make([]byte, 32)}
	if !ipv4 && random.IntN(2) == 0 {
		kind := uint8(126 + random.IntN(18))
		ip = packettest.ICMP(t, p.Src, p.Dst, kind, 0, 0, make([]byte, 16))
		ip = packettest.WithHopLimit(ip, 255)
		tuple = flow.Tuple{Src: p.Src, Dst: p.Dst, Protocol: 58}
		return ip, tuple, kind >= 133 && kind <= 137
	}
	return p.Bytes(t), p.Flow(), false
}

// TestHeadendLeavesLinksAlone: what belongs to a link passes as it came, whatever rule, group or
// path of its flow would choose it, arriving and leaving; all else is chosen. It is so by the
// tables of the RFCs, and by the model.
func TestHeadendLeavesLinksAlone(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	ends := newTwoHeadends(t, w, Internal)
	steerAll(t, ends)
	header := ends.model.Table[0].Lists[0]
	arrival := newRunner(ends.program.programs[Internal], w.near)
	random := rand.New(rand.NewPCG(6, 6))
	groups := []Group{{Prefix: netip.MustParsePrefix("::/0")},
		{Prefix: netip.MustParsePrefix("0.0.0.0/0")}}
	for i := range groups {
		groups[i].Lists, groups[i].Weights = []srpolicy.Header{header}, []uint32{1}
		groups[i].Hold = time.Hour
	}
	to := []net.HardwareAddr{nearMAC, nearMAC, nearMAC, {0x33, 0x33, 0xff, 0, 0, 1},
		{1, 0, 0x5e, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	rounds := map[string]func(flow.Tuple){
		"by a rule":  func(flow.Tuple) {},
		"of a flow":  func(f flow.Tuple) { must(t, ends.program.SetFlow(f, header, time.Hour)) },
		"of a group": func(flow.Tuple) {},
	}
	for _, round := range []string{"by a rule", "of a flow", "of a group"} {
		if round == "of a group" {
			must(t, ends.program.SetTable(nil))
			must(t, errors.Join(ends.program.SetGroups(groups)...))
		}
		passed, chosen := 0, 0
		for i := range 2000 {
			ip, tuple, discovery := linkPacket(t, random, i%2 == 0)
			link := packettest.Link{Src: routerMAC, Dst: to[random.IntN(len(to))]}
			stays := link.Dst[0]&1 != 0 || isOfLink(tuple.Src) || isOfLink(tuple.Dst) || discovery
			rounds[round](tuple)
			frame := link.Frame(t, ip)
			verdict, after := arrival.run(t, frame)
			diverted, left, err := ends.program.divert.Test(frame)
			must(t, err)
			if stays != (verdict == xdpPass && bytes.Equal(after, frame)) ||
				stays != (diverted == tcUnspec && bytes.Equal(left, frame)) {
				t.Fatalf("%s: arriving, verdict %d, leaving %d; stays on its link %t\n%x", round,
					verdict, diverted, stays, frame)
			}
			if want := ends.model.Process(uint32(w.near), 0, frame); stays != (want.Entry < 0) {
				t.Fatalf("the model takes entry %d; stays on its link %t\n%x", want.Entry, stays,
					frame)
			}
			if stays {
				passed++
			} else {
				chosen++
			}
		}
		if passed < 200 || chosen < 200 {
			t.Errorf("%s: %d packets stay, %d are chosen: the test misses", round, passed, chosen)
		}
	}
}

// TestHeadendKeepsNeighbours: with a rule for all traffic, whose way does not lead back, a host
// resolves addresses of the head-end, and finds that they are still there.
func TestHeadendKeepsNeighbours(t *testing.T) {
	n := newNetwork(t, "r2", "r3")
	lists := []srpolicy.List{{Segments: []netip.Addr{netip.MustParseAddr("fcbb:0:2::e")}}}
	path := srpolicy.CandidatePath{Name: "only", Action: srpolicy.Path, Lists: lists}
	n.openHeadend([]srpolicy.Rule{{Policy: "all"}},
		srpolicy.Policy{Name: "all", Paths: []srpolicy.CandidatePath{path}})
	n.ip("h1", "neigh del 2001:db8:1::1 dev pe1")
	for _, address := range []string{"2001:db8:1::1", "fe80::ff:fe00:101"} {
		n.do("h1", func() error {
			c, err := net.Dial("udp", "["+address+"%pe1]:9")
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte("who has it?"))
			return err
		})
		n.resolves(address)
		n.ip("h1", "neigh replace "+address+" lladdr 02:00:00:00:01:01 dev pe1 nud probe")
		n.resolves(address)
	}
}

// resolves waits until h1 knows that pe1 has the address.
func (n *network) resolves(address string) {
	n.t.Helper()
	n.do("h1", func() error {
		device, err := net.InterfaceByName("pe1")
		if err != nil {
			return err
		}
		for end := time.Now().Add(wirePatience); ; time.Sleep(time.Millisecond) {
			known, err := netlink.NeighList(device.Index, netlink.FAMILY_V6)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(known, func(k netlink.Neigh) bool {
				return k.IP.Equal(net.ParseIP(address))
			})
			if i >= 0 && known[i].State == netlink.NUD_REACHABLE {
				return nil
			}
			if i >= 0 && known[i].State == netlink.NUD_FAILED || time.Now().After(end) {
				n.t.Errorf("nobody has %s: neighbours %v", address, known)
				return nil
			}
		}
	})
}
