package datapath

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sextant/datapath/packettest"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// shadowCommands make a namespace the router with the shadow: table 101, whose next hop is the host
// that a stray comes from, as when its connection has ended. IPv4, for which the kernel has End.DT4
// with VRF devices alone, is looked up there when it comes out of a pair of interfaces.
const shadowCommands = `
link set lo up
link set farpeer address FARMAC
link set farpeer up
addr add fd00:5e:2::2/64 dev farpeer nodad
sr tunsrc set fd00:5e:2::2
-6 route add fcbb:bb00:1::/48 via fd00:5e:2::1
link add out type veth peer name in
link set out up
link set in address 02:00:00:00:03:02
link set in up
addr add 10.98.0.1/30 dev out
neigh add 10.80.0.1 lladdr 02:00:00:00:03:02 dev out
-6 route add fcbb:bb00:d000:4::/64 encap seg6local action End.DX4 nh4 10.98.0.2 dev out
-6 route add fcbb:bb00:d000:6::/64 encap seg6local action End.DT6 table 101 dev farpeer
-4 rule add iif in lookup 101 priority 100
route add 10.80.0.1 encap seg6 mode encap segs SID4 dev farpeer table 101
-6 route add 2001:db8:80::1 encap seg6 mode encap segs SID6 dev farpeer table 101
`

// shadow makes what is beyond the interface far the router with the shadow.
func (r *strayRouter) shadow(t *testing.T) {
	t.Helper()
	ns, name := linuxtest.Netns(t)
	ip(t, "", "link set farpeer netns "+name+`
		route replace 0.0.0.0/0 encap seg6 mode encap segs fcbb:bb00:d000:4:: dev far table 20
		-6 route replace ::/0 encap seg6 mode encap segs fcbb:bb00:d000:6:: dev far table 20`)
	must(t, linux.WriteSysctl("net.ipv6.conf.far.seg6_enabled", "1"))
	commands := strings.NewReplacer("FARMAC", farRouterMAC.String(), "SID4",
		r.sid(netip.MustParseAddr(strayVIP4)).String(),
		"SID6", r.sid(netip.MustParseAddr(strayVIP6)).String()).Replace(shadowCommands)
	must(t, ns.Do(func() error {
		for sysctl, value := range map[string]string{
			"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.rp_filter": "0",
			"net.ipv4.conf.default.rp_filter": "0",
			"net.ipv6.conf.all.forwarding":    "1", "net.ipv6.conf.all.seg6_enabled": "1",
			"net.ipv6.conf.farpeer.seg6_enabled": "1",
		} {
			must(t, linux.WriteSysctl(sysctl, value))
		}
		ip(t, "", commands)
		return nil
	}))
}

// TestReturnedStrays: what the shadow sends back to the host that it came from goes round no more,
// and is answered with a RST. No hop limit would end it: the kernel's End.DT6 and its encapsulation
// leave that of the packet inside as it is.
func TestReturnedStrays(t *testing.T) {
	for name, of := range map[string]func(testing.TB, *strayRouter) StrayVRF{"VRF device": ofDevice,
		"namespace": ofNamespace} {
		t.Run(name, func(t *testing.T) {
			r := newStrayRouter(t)
			vrf := of(t, r)
			r.shadow(t)
			r.start(t, vrf, "near", "far")
			for i, stray := range []packettest.Packet{
				{Src: netip.MustParseAddr(strayClient4), Dst: netip.MustParseAddr(strayVIP4)},
				{Src: netip.MustParseAddr(strayClient6), Dst: netip.MustParseAddr(strayVIP6)},
			} {
				const number = 0x5741 // which the RST repeats
				stray.SrcPort, stray.DstPort, stray.Flags, stray.Ack, stray.HopLimit = 4711, 80,
					"A", number, 255
				r.wire.send(t, packettest.Link{Src: routerMAC, Dst: nearMAC}.Frame(t,
					packettest.To(r.sid(stray.Dst)).Around(t, stray.Bytes(t))))
				if !r.wire.seesReset(stray, number) {
					t.Errorf("%v: the client is not answered", stray.Dst)
				}
				traffic, err := r.program.Traffic(0)
				must(t, err)
				if rounds := uint64(i + 1); traffic.Strays != rounds ||
					traffic.Returned != rounds || traffic.Here != 0 {
					t.Fatalf("%v: counted %+v; want %d strays, all of which came back once",
						stray.Dst, traffic, rounds)
				}
			}
		})
	}
}

// seesReset waits for a RST that answers a packet.
func (w wire) seesReset(about packettest.Packet, number uint32) bool {
	buffer := make([]byte, 4096)
	for deadline := time.Now().Add(wirePatience); time.Now().Before(deadline); {
		n, _, err := linuxtest.Receive(w.fd, buffer)
		if err != nil {
			return false
		}
		tcp := 14 + 20
		if about.Dst.Is6() {
			tcp = 14 + 40
		}
		if n < tcp+20 {
			continue
		}
		source, destination := binary.BigEndian.Uint16(buffer[tcp:]),
			binary.BigEndian.Uint16(buffer[tcp+2:])
		const flags, reset = 13, 4
		if source == about.DstPort && destination == about.SrcPort && buffer[tcp+flags] == reset &&
			binary.BigEndian.Uint32(buffer[tcp+4:]) == number {
			return true
		}
	}
	return false
}
