package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/linux"
	"sextant/te/srpolicy"
)

// TestOrder sends numbered packets in disorder, some of them twice and some never, and they come to
// the host in order, once; so do those of the sender's next life.
func TestOrder(t *testing.T) {
	n := newNetwork(t, "r2", "r3")
	m := n.openMerge(tlvSettings, "r2", "r3")
	must(t, m.SetInstance(0, Instance{SID: mergeSID1, Flows: []uint32{1, 2}, Rules: tlvSettings,
		Order: true}))
	var order *Order
	n.do("pe2", func() (err error) {
		// which number 18 is waited for, and which others may be late on a busy machine
		order, err = m.OpenOrder(time.Second)
		return err
	})
	stop, done := make(chan struct{}), make(chan error)
	go func() { done <- order.Run(stop) }()
	end := sync.OnceValue(func() error { close(stop); return <-done })
	defer end() // before the maps are closed, also of a test that fails
	eventually(t, "the program knows of the process", func() bool {
		var since uint64
		return m.maps["order_alive"].Lookup(uint32(0), &since) == nil && since > 0
	})

	var receiver net.PacketConn
	n.do("h2", func() (err error) {
		// One queue: without it each CPU has its own, and packets overtake each other between them.
		if err := linux.SetOffload("pe2", linux.GRO, true); err != nil {
			return err
		}
		receiver, err = net.ListenPacket("udp", "[2001:db8:2::2]:4433")
		return err
	})
	defer receiver.Close()
	sent := []uint32{5, 7, 6, 6, 8, 12, 10, 9, 7, 11, 14, 13, 16, 17, 15} // 6 and 7 twice
	sent = append(sent, 19, 20)                                           // 18 is lost
	n.inject("r2", 5, sent)
	// The sender is restarted: its numbers are far behind, and in disorder, too.
	n.inject("r2", 6, []uint32{0, 2, 1, 4, 3})

	var got []uint32
	buffer := make([]byte, 64)
	for len(got) < 20 {
		must(t, receiver.SetReadDeadline(time.Now().Add(wirePatience)))
		size, _, err := receiver.ReadFrom(buffer)
		if err != nil {
			t.Fatalf("%v, after %v", err, got)
		}
		if size == 4 {
			got = append(got, binary.BigEndian.Uint32(buffer))
		}
	}
	for i, number := range got {
		want := uint32(5 + i)
		switch {
		case i >= 15: // of the second life
			want = uint32(i - 15)
		case want >= 18:
			want++
		}
		if number != want {
			t.Fatalf("received %v: number %d in place %d, want %d", got, number, i, want)
		}
	}
	must(t, end())
	must(t, order.Close())
	must(t, Unload(m.dir))
}

// inject sends a packet to h2 from the router for each number of an epoch, as it would come to the
// egress over the path of flow 1.
func (n *network) inject(router string, epoch uint8, numbers []uint32) {
	n.t.Helper()
	var list packettest.Steered
	for _, l := range packettest.SteeredLists() {
		if l.Name == "two, TLV" {
			list = l
		}
	}
	n.do(router, func() error {
		link, err := net.InterfaceByName("pe2")
		if err != nil {
			return err
		}
		fd, err := packetSocket(link.Index, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, number := range numbers {
			ip := packettest.Packet{
				Src: netip.MustParseAddr("2001:db8:1::2"),
				Dst: netip.MustParseAddr("2001:db8:2::2"), SrcPort: 9, DstPort: 4433,
				Protocol: layers.IPProtocolUDP, Payload: binary.BigEndian.AppendUint32(nil, number),
			}.Bytes(n.t)
			outer := list.Arrived(ip, number, 0, 1, 0, 60).From("fd00:5e::1")
			outer.Dst = mergeSID1.Addr()
			frame := packettest.Link{Src: link.HardwareAddr,
				Dst: net.HardwareAddr{2, 0, 0, 0, 20, 1}}.Frame(n.t, outer.Around(n.t, ip))
			// and the flow
			copy(frame[ethernetHeader+ipv6Header+8+2*16+3:], []byte{epoch, 0, 0, 0, 1})
			if err := unix.Send(fd, frame, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestOrderNeedsItsProcess: while no process puts packets in order, they pass as they come.
func TestOrderNeedsItsProcess(t *testing.T) {
	w := newWorld(t)
	merges := newTwoMerges(t, w)
	instance := mergeInstances[0]
	instance.Order = true
	must(t, merges.program.SetInstance(0, instance))
	s := newSender(t, rand.New(rand.NewPCG(4, 4)), srpolicy.TLV, instance)
	run := newRunner(merges.program.programs["merge"], w.near)
	frame := s.next()
	step := func(want uint32) {
		t.Helper()
		at := ethernetHeader + s.headers[0].NumberAt[0]
		binary.BigEndian.PutUint32(frame[at:], binary.BigEndian.Uint32(frame[at:])+1)
		verdict, after := run.run(t, frame)
		if verdict != want {
			t.Errorf("verdict %d, want %d", verdict, want)
		}
		note := binary.BigEndian.Uint16(after[12:])
		if (note == orderEtherType) != (want == xdpRedirect) {
			t.Errorf("EtherType %#x of a packet with verdict %d", note, verdict)
		}
	}
	step(xdpPass)
	must(t, merges.program.maps["order_port"].Put(uint32(0), uint32(w.far)))
	now, err := monotonic()
	must(t, err)
	must(t, merges.program.maps["order_alive"].Put(uint32(0), now))
	step(xdpRedirect)
	must(t, merges.program.maps["order_alive"].Put(uint32(0), now-uint64(time.Second)))
	step(xdpPass)
}
