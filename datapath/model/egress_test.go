package model_test

import (
	"bytes"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/packettest"
)

// TestEgress compares the whole frame of SYN-ACKs with all kinds of options.
func TestEgress(t *testing.T) {
	for _, test := range packettest.MSSCases(hostMSS) {
		t.Run(test.Name, func(t *testing.T) {
			for _, packet := range []inner{web4("").Reply("SA"), web6("").Reply("SA")} {
				for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
					packet.TCPOptions = test.Before
					wire := fromClient(vlans...)
					wire.Padding = []byte("padding")
					frame := wire.Frame(t, packet.Bytes(t))
					before := bytes.Clone(frame)
					got := newHost(internal).Egress(frame, false)
					packet.TCPOptions = test.After
					wantFrame(t, got, wire.Frame(t, packet.Bytes(t)))
					wantFrame(t, frame, before)
				}
			}
		})
	}
}

// TestEgressLeft shows which frames leave as they are, broken ones too.
func TestEgressLeft(t *testing.T) {
	synAck := web4("").Reply("SA")
	synAck.TCPOptions = []layers.TCPOption{mss(9000)}
	with := func(change func(p *inner)) []byte {
		p := synAck
		change(&p)
		return fromClient().Frame(t, p.Bytes(t))
	}
	whole := with(func(*inner) {})
	spoiled := func(at int, value byte) []byte {
		b := bytes.Clone(whole)
		b[at] = value
		return b
	}
	datagram := with(func(p *inner) { p.Protocol = udp })
	cases := map[string][]byte{
		"SYN":             with(func(p *inner) { p.Flags = "S" }),
		"ACK":             with(func(p *inner) { p.Flags = "A" }),
		"foreign port":    with(func(p *inner) { p.SrcPort = 8080 }),
		"foreign address": with(func(p *inner) { p.Src = addr("192.0.2.1") }),
		"UDP":             datagram,
		"extension header": fromClient().Frame(t,
			web6("").Reply("SA").With(mss(9000)).Behind(dst, ext(tcp, 0)).Bytes(t)),
		"ARP":                   fromClient().FrameOf(t, layers.EthernetTypeARP, make([]byte, 28)),
		"fragment":              spoiled(20, 0x20),
		"bad IHL":               spoiled(14, 0x44),
		"data offset too small": spoiled(46, 0x40),
		"data offset too great": spoiled(46, 0x70),
	}
	for name, frame := range cases {
		t.Run(name, func(t *testing.T) {
			wantFrame(t, newHost(internal).Egress(frame, false), bytes.Clone(frame))
		})
	}
	for n := range len(whole) {
		wantFrame(t, newHost(internal).Egress(whole[:n], false), bytes.Clone(whole[:n]))
	}
	host := newHost(internal)
	for _, service := range host.Services {
		service.MSS = 0
	}
	wantFrame(t, host.Egress(whole, false), whole)
}
