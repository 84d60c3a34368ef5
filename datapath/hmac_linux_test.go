package datapath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// The kernel's HMACs (net/ipv6/seg6_hmac.c): what the edge signs it verifies, and what it signs the
// host verifies.

// Generic netlink of include/uapi/linux/seg6_genl.h.
const (
	seg6SetHMAC      = 1
	seg6Version      = 1
	seg6KeyID        = 3
	seg6Secret       = 4
	seg6SecretLength = 5
	seg6Algorithm    = 6
	seg6SHA256       = 2
)

// setLinuxHMAC gives the kernel a key, as "ip sr hmac set" does. It skips the test where the kernel
// was built without.
func setLinuxHMAC(t *testing.T, key srv6.HMACKey) {
	t.Helper()
	family, err := netlink.GenlFamilyGet("SEG6")
	if errors.Is(err, unix.ENOENT) {
		t.Skip("missing kernel feature: segment routing (CONFIG_IPV6_SEG6_LWTUNNEL)")
	}
	must(t, err)
	request := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	request.AddData(&nl.Genlmsg{Command: seg6SetHMAC, Version: seg6Version})
	secret := key.Secret.Octets()
	request.AddData(nl.NewRtAttr(seg6KeyID, binary.NativeEndian.AppendUint32(nil, key.ID)))
	request.AddData(nl.NewRtAttr(seg6SecretLength, []byte{byte(len(secret))}))
	request.AddData(nl.NewRtAttr(seg6Algorithm, []byte{seg6SHA256}))
	request.AddData(nl.NewRtAttr(seg6Secret, secret))
	_, err = request.Execute(unix.NETLINK_GENERIC, 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("missing kernel feature: HMACs of segment routing headers (CONFIG_IPV6_SEG6_HMAC)")
	}
	must(t, err)
}

// signedEncap is a route's encapsulation in a segment routing header that the kernel signs: "encap
// seg6 mode encap segs ... hmac KEY".
type signedEncap struct {
	netlink.SEG6Encap
	header srv6.SRH
}

func (e *signedEncap) Encode() ([]byte, error) {
	const attributeHeader, mode = 4, 4
	srh, err := e.header.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	b := binary.NativeEndian.AppendUint16(nil, uint16(attributeHeader+mode+len(srh)))
	b = binary.NativeEndian.AppendUint16(b, nl.SEG6_IPTUNNEL_SRH)
	b = binary.NativeEndian.AppendUint32(b, nl.SEG6_IPTUN_MODE_ENCAP)
	return append(b, srh...), nil
}

// next returns the next IPv6 packet with an SRH that leaves by a device's other end.
func (w wire) next(t *testing.T) (frame []byte, header srv6.SRH) {
	t.Helper()
	buffer := make([]byte, 2048)
	for deadline := time.Now().Add(wirePatience); time.Now().Before(deadline); {
		n, from, err := linuxtest.Receive(w.fd, buffer)
		must(t, err)
		link, ok := from.(*unix.SockaddrLinklayer)
		if !ok || link.Pkttype == unix.PACKET_OUTGOING || n < ipv6HeaderEnd ||
			buffer[20] != unix.IPPROTO_ROUTING {
			continue
		}
		header, _, err := srv6.ParseSRH(buffer[ipv6HeaderEnd:n])
		must(t, err)
		return buffer[:n], header
	}
	t.Fatalf("no packet with a segment routing header within %v", wirePatience)
	return nil, srv6.SRH{}
}

func linuxKey(t *testing.T) srv6.HMACKey { return hmacKeysAccepted(t)[1] }

// seg6Only makes the kernel take segment routing headers from an interface only if they are signed.
func seg6Only(t *testing.T, iface string) {
	t.Helper()
	for name, value := range map[string]string{"all/seg6_enabled": "1",
		iface + "/seg6_enabled": "1", iface + "/seg6_require_hmac": "1"} {
		must(t, linux.WriteSysctl("net/ipv6/conf/"+name, value))
	}
}

// TestHMACForLinux: a router that insists on HMACs forwards what the edge signs, for lists of each
// length, whole and reduced, and drops what is signed with another key.
func TestHMACForLinux(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	key := linuxKey(t)
	wrong, standard := hmacKeyOfText(t, key.ID, srv6.HMACLinux, "another secret"), key
	standard.Form = srv6.HMACStandard
	var frames [][3][]byte // the last of each is right
	for _, encapsulation := range []Encapsulation{SRH, SRHReduced} {
		for _, ids := range [][]uint16{{1, 2}, {1, 2, 6}, {1, 2, 3, 4, 5, 6}} {
			program := signingEdge(t, w, encapsulation, ids)
			var three [3][]byte
			for i, k := range []srv6.HMACKey{wrong, standard, key} {
				must(t, program.SetSigningKey(k))
				three[i] = signedFrame(t, w, program, uint16(2000+i))
			}
			frames = append(frames, three)
		}
	}
	setLinuxHMAC(t, key)
	seg6Only(t, "near")
	local := netlink.SEG6LocalEncap{Action: nl.SEG6_LOCAL_ACTION_END}
	local.Flags[nl.SEG6_LOCAL_ACTION] = true
	must(t,
		netlink.RouteReplace(&netlink.Route{Dst: ipNet(netip.MustParsePrefix("fcbb:bb00:1::/128")),
			LinkIndex: w.near, Encap: &local}))
	near, far := openWire(t), openWireOn(t, "farpeer")
	for _, three := range frames {
		for _, frame := range three {
			copy(frame, nearMAC)
			must(t, unix.Sendto(near.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: near.index(t)}))
		}
		right := three[2]
		sent, _, err := srv6.ParseSRH(right[ipv6HeaderEnd:])
		must(t, err)
		after, got := far.next(t)
		if got.SegmentsLeft != sent.SegmentsLeft-1 || !bytes.Equal(after[len(after)-20:],
			right[len(right)-20:]) {
			t.Errorf("the kernel forwarded first %x, want %x with one segment less", after, right)
		}
	}
}

// signingEdge is an edge of one service with a chain.
func signingEdge(t *testing.T, w *world, encapsulation Encapsulation, ids []uint16) *Edge {
	t.Helper()
	config := edgeConfig(t)
	config.Encapsulation, config.Signs = encapsulation, true
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	t.Cleanup(e.Close)
	must(t, e.SetService(edgeServices[0], 0, tableBuckets))
	serveAll(t, e, len(ids), ids...)
	for _, id := range ids {
		must(t, e.SetSID(id, sidOf(t, config.Block, id)))
	}
	w.openPorts(t, e.collection)
	return e
}

func signedFrame(t *testing.T, w *world, e *Edge, port uint16) []byte {
	t.Helper()
	tuple := flow.Tuple{Src: clientV6, Dst: edgeServices[0].VIP, SrcPort: port,
		DstPort: edgeServices[0].Port, Protocol: 6}
	verdict, frame := newRunner(e.programs[External], w.near).run(t,
		tcpFrame(t, tuple, &layers.TCP{ACK: true}))
	if verdict != xdpTransmit {
		t.Fatalf("the edge returned %d", verdict)
	}
	return bytes.Clone(frame)
}

// TestHMACFromLinux: the host takes what the kernel signs, and counts what is signed with a key
// that it does not know, or with another secret.
func TestHMACFromLinux(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	key := linuxKey(t)
	setLinuxHMAC(t, key)
	hosts := newTwoHosts(t, w, map[flow.Tuple]model.Socket{},
		func(c *HostConfig) { c.HMAC = HMACSRH })
	must(t, netlink.AddrAdd(mustLink(t, "far"),
		&netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("2001:db8:c1::1/128")),
			Flags: unix.IFA_F_NODAD}))
	far := openWireOn(t, "farpeer")
	host := subject{runner: newRunner(hosts.program.programs["host"], w.near),
		tables: hosts.program.collection, host: true}
	wrong := hmacKeyOfText(t, key.ID, srv6.HMACLinux, "another secret")
	for _, travel := range [][]netip.Addr{
		{sidOf(t, block(t), 1)},
		{sidOf(t, block(t), 1), sidOf(t, block(t), backendFar)},
		{sidOf(t, block(t), 1), sidOf(t, block(t), backendFar), sidOf(t, block(t), backendNear2)},
	} {
		frame := linuxSigned(t, w, far, key.ID, travel)
		outcome := map[bool]string{true: "taken", false: "redirected"}[len(travel) == 1]
		for _, test := range []struct {
			keys []srv6.HMACKey
			want string
		}{
			{[]srv6.HMACKey{key}, outcome}, {[]srv6.HMACKey{wrong}, "hmac_wrong"},
			{nil, "hmac_key"}, {hmacKeysAccepted(t), outcome},
		} {
			must(t, hosts.program.SetHMACKeys(test.keys))
			if got, _ := host.process(t, frame); got != test.want {
				t.Errorf("%d segments: %s, want %s: %x", len(travel), got, test.want, frame)
			}
		}
	}
}

// linuxSigned has the kernel encapsulate a packet along a path, and returns the frame as it arrives
// at the first segment.
func linuxSigned(t *testing.T, w *world, far wire, key uint32, travel []netip.Addr) []byte {
	t.Helper()
	header, err := srv6.NewSRH(0, travel)
	must(t, err)
	header.Flags = srv6.LinuxHMACFlag
	tlv, err := srv6.HMAC{KeyID: key, Digest: make([]byte, 32)}.TLV()
	must(t, err)
	header.TLVs = []srv6.TLV{tlv}
	must(t, netlink.RouteReplace(&netlink.Route{Dst: ipNet(netip.PrefixFrom(hostVIPv6, 128)),
		LinkIndex: w.far, Encap: &signedEncap{header: header}}))
	must(t, netlink.RouteReplace(&netlink.Route{Dst: ipNet(netip.PrefixFrom(travel[0], 128)),
		LinkIndex: w.far, Gw: net.ParseIP("fd00:5e:2::2")}))
	client, err := net.DialUDP("udp", nil,
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(hostVIPv6, 53)))
	must(t, err)
	defer client.Close()
	_, err = client.Write([]byte("question"))
	must(t, err)
	frame, _ := far.next(t)
	return frame
}
