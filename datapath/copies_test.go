package datapath

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/srv6"
)

// alike is a packet of which an edge sends several that do not differ, each as two copies.
type alike struct {
	packet  []byte
	brought [srv6.Copies]uint64
	opens   bool
}

// drawAlike makes packets of all kinds that differ by as little as one octet, and the arrivals of
// their copies: as many as were sent less some that were lost, in any order.
func drawAlike(t *testing.T, random *rand.Rand) (all []*alike, arrivals []arrival) {
	for i := range 300 {
		p := []packettest.Packet{packettest.Web4("A"), packettest.Web6("A"), packettest.Web4("S"),
			packettest.Web6("S"), packettest.Web4("").Of(layers.IPProtocolUDP),
			packettest.Web6("").Of(layers.IPProtocolUDP)}[i%6]
		opens := p.Flags == "S"
		switch {
		case opens: // or its flow would have been refused before
			p.SrcPort = uint16(1024 + i)
		case p.Protocol == layers.IPProtocolUDP:
			p.Payload = []byte(fmt.Sprint("payload ", i))
		case i%12 < 6:
			p = p.Numbered(uint32(i), 1)
		default:
			p.Payload = []byte{byte(i)} // which only the checksum shows
		}
		a := &alike{packet: p.Bytes(t), opens: opens}
		all = append(all, a)
		for range 1 + random.IntN(4) {
			for copy := range srv6.Copies {
				if random.IntN(4) > 0 {
					a.brought[copy]++
					arrivals = append(arrivals, arrival{i, copy})
				}
			}
		}
	}
	random.Shuffle(len(arrivals),
		func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })
	return all, arrivals
}

// arrival is a copy of a packet that comes to the host.
type arrival struct{ packet, copy int }

// marked is the outer packet of a copy to the host, with an id of a candidate behind it or 0.
func marked(t *testing.T, candidate uint16, copy int, ip []byte) []byte {
	carrier := packettest.OfferSID.As16()
	carrier[6], carrier[7] = byte(candidate>>8), byte(candidate)
	carrier[14], carrier[15] = 0xff, byte(0xfe+copy)
	return packettest.FromClient().Frame(t, packettest.To(netip.AddrFrom16(carrier)).Around(t, ip))
}

func longCopies(c *HostConfig) { c.Copies = time.Minute }

// TestCopiesOnce: of packets that are alike the last candidate takes as many as that path brought
// which brought most, whatever was lost and came late, and each of them as it was sent.
func TestCopiesOnce(t *testing.T) {
	w := newWorld(t)
	_, host := tableHost(t, w, longCopies)
	all, arrivals := drawAlike(t, rand.New(rand.NewPCG(21, 1)))
	taken := make([]uint64, len(all))
	before := host.counts(t)["duplicate"]
	var twice uint64
	for _, a := range arrivals {
		frame := marked(t, 0, a.copy, all[a.packet].packet)
		verdict, after := host.run(t, frame)
		if verdict != xdpPass {
			twice++
			continue
		}
		taken[a.packet]++
		if got := after[14:]; !all[a.packet].opens && !bytes.Equal(got, all[a.packet].packet) {
			t.Fatalf("packet %d was taken as %x, sent as %x", a.packet, got, all[a.packet].packet)
		}
	}
	for i, a := range all {
		if want := max(a.brought[0], a.brought[1]); taken[i] != want {
			t.Errorf("packet %d came %v times by the paths, and was taken %d times, want %d", i,
				a.brought, taken[i], want)
		}
	}
	if got := host.counts(t)["duplicate"] - before; got != twice || twice == 0 {
		t.Errorf("%d copies were counted as duplicate, %d were dropped", got, twice)
	}
}

// TestCopiesRefused: a host that refuses passes all copies on, so that the next candidate has each
// of them, and counts as many offers as that path brought which brought most. One that would accept
// by then does not accept the second copy.
func TestCopiesRefused(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	h, host := tableHost(t, w, longCopies)
	all, arrivals := drawAlike(t, rand.New(rand.NewPCG(21, 2)))
	var want uint64
	for _, a := range all {
		if a.opens {
			want += max(a.brought[0], a.brought[1])
		}
	}
	passed := 0
	for i, a := range arrivals {
		if !all[a.packet].opens {
			continue
		}
		setBusy(t, h, 1, int32(4+4*(i%2)))
		verdict, after := host.run(t, marked(t, 2, a.copy, all[a.packet].packet))
		if verdict != xdpRedirect {
			t.Fatalf("SYN %d, copy %d: verdict %d", a.packet, a.copy, verdict)
		}
		passed++
		if got := after[14+24 : 14+40]; got[5] != 2 || got[12] != 0xff ||
			got[13] != byte(0xfe+a.copy) {
			t.Fatalf("SYN %d, copy %d went on to %x", a.packet, a.copy, got)
		}
	}
	var offered, refused uint64
	for index := uint32(1); index <= 2; index++ {
		traffic, err := h.Traffic(index)
		must(t, err)
		offered, refused = offered+traffic.Offered, refused+traffic.Refused
	}
	if offered != want || refused != want || passed == 0 {
		t.Errorf("%d offers, %d refused, want %d", offered, refused, want)
	}
	for index := uint32(1); index <= 2; index++ {
		setBusy(t, h, index, 0) // would accept now
	}
	for i, a := range all {
		if !a.opens || a.brought[0] == a.brought[1] {
			continue
		}
		copy := 0
		if a.brought[0] > a.brought[1] {
			copy = 1
		}
		if verdict, _ := host.run(t, marked(t, 2, copy, a.packet)); verdict != xdpRedirect {
			t.Errorf("late copy of SYN %d was not passed on as the first: verdict %d", i, verdict)
		}
	}
}

// TestCopiesOfAccepted: where the first copy of a SYN was taken, the other one is not offered to a
// host that would refuse it by now: the next candidate could accept it.
func TestCopiesOfAccepted(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	h, host := tableHost(t, w, longCopies)
	for i, p := range []packettest.Packet{packettest.Web4("S"), packettest.Web6("S")} {
		setBusy(t, h, uint32(i+1), 0)
		if verdict, _ := host.run(t, marked(t, 2, 1, p.Bytes(t))); verdict != xdpPass {
			t.Fatalf("the first copy was not taken: verdict %d", verdict)
		}
		setBusy(t, h, uint32(i+1), 4)
		if verdict, _ := host.run(t, marked(t, 2, 0, p.Bytes(t))); verdict != xdpDrop {
			t.Errorf("the second copy was not dropped: verdict %d", verdict)
		}
	}
}

// TestCopiesAgreeWithModel gives frames again and again, as either copy, to program and model.
func TestCopiesAgreeWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	sockets, connections, keep := hostSockets(t, w)
	hosts := newTwoHosts(t, w, sockets, func(c *HostConfig) { c.Copies = time.Hour })
	generator := hostGenerator(t, 21, connections, hosts.program.config)
	run := newRunner(hosts.program.programs["host"], w.near)
	random := rand.New(rand.NewPCG(21, 3))
	var pool [16][]byte
	offers, reasons := map[model.Offer]int{}, tally{}
	for i := range *frames / 10 {
		keep(t)
		slot := random.IntN(len(pool))
		for len(pool[slot]) < 60 || random.IntN(8) == 0 {
			frame := bytes.Clone(generator.NextHost())
			hosts.tell(i, uint32(w.near), frame)
			pool[slot] = frame
		}
		frame := bytes.Clone(pool[slot])
		if at := 14 + 38; frame[12] == 0x86 && random.IntN(8) > 0 {
			frame[at], frame[at+1] = 0xff, byte(0xfe+random.IntN(2))
		}
		want := hosts.model.Process(uint32(w.near), 0, frame)
		verdict, after := run.run(t, frame)
		reasons.add(want)
		offers[want.Offer]++
		if !agree(t, frame, verdict, after, want) {
			t.Fatalf("frame %d, offer %s, flow %+v", i, want.Offer, want.Flow)
		}
	}
	if n := offers[model.OfferPassedBefore]; n < *frames/1000 {
		t.Errorf("only %d frames were passed on as the other copy: the test misses", n)
	}
	if n := reasons["duplicate"]; n < uint64(*frames)/1000 {
		t.Errorf("only %d copies were dropped: the test misses", n)
	}
	drops, err := hosts.program.Drops()
	must(t, err)
	reasons.matches(t, drops, nil)
}
