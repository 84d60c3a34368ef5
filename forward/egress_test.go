package forward_test

import (
	"bytes"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// reply returns the packet that goes the other way.
func (p inner) reply(flags string) inner {
	p.src, p.dst, p.srcPort, p.dstPort, p.flags = p.dst, p.src, p.dstPort, p.srcPort, flags
	return p
}

// TestEgress compares the whole frame of SYN-ACKs with all kinds of options.
func TestEgress(t *testing.T) {
	for _, test := range mssCases {
		t.Run(test.name, func(t *testing.T) {
			for _, packet := range []inner{web4("").reply("SA"), web6("").reply("SA").behind(dst, ext(tcp, 1))} {
				for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
					packet.tcpOptions = test.before
					wire := fromClient(vlans...)
					wire.padding = []byte("padding")
					frame := wire.frame(t, packet.bytes(t))
					before := bytes.Clone(frame)
					got := newHost(internal).Egress(frame)
					packet.tcpOptions = test.after
					wantFrame(t, got, wire.frame(t, packet.bytes(t)))
					wantFrame(t, frame, before)
				}
			}
		})
	}
}

// TestEgressLeft shows which frames leave as they are, broken ones too.
func TestEgressLeft(t *testing.T) {
	synAck := web4("").reply("SA")
	synAck.tcpOptions = []layers.TCPOption{mss(9000)}
	with := func(change func(p *inner)) []byte {
		p := synAck
		change(&p)
		return fromClient().frame(t, p.bytes(t))
	}
	whole := with(func(*inner) {})
	spoiled := func(at int, value byte) []byte {
		b := bytes.Clone(whole)
		b[at] = value
		return b
	}
	datagram := with(func(p *inner) { p.protocol = udp })
	cases := map[string][]byte{
		"SYN":                   with(func(p *inner) { p.flags = "S" }),
		"ACK":                   with(func(p *inner) { p.flags = "A" }),
		"foreign port":          with(func(p *inner) { p.srcPort = 8080 }),
		"foreign address":       with(func(p *inner) { p.src = addr("192.0.2.1") }),
		"UDP":                   datagram,
		"ARP":                   fromClient().frameOf(t, layers.EthernetTypeARP, make([]byte, 28)),
		"fragment":              spoiled(20, 0x20),
		"bad IHL":               spoiled(14, 0x44),
		"data offset too small": spoiled(46, 0x40),
		"data offset too great": spoiled(46, 0x70),
	}
	for name, frame := range cases {
		t.Run(name, func(t *testing.T) {
			wantFrame(t, newHost(internal).Egress(frame), bytes.Clone(frame))
		})
	}
	for n := range len(whole) {
		wantFrame(t, newHost(internal).Egress(whole[:n]), bytes.Clone(whole[:n]))
	}
	host := newHost(internal)
	for _, service := range host.Services {
		service.MSS = 0
	}
	wantFrame(t, host.Egress(whole), whole)
}
