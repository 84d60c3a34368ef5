package pcc

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	packetflow "sextant/packet/flow"
	"sextant/packet/srv6"
)

// copyWorld is some hosts that are the model of the program, and the copies of one packet on their
// way along a chain of all of them.
type copyWorld struct {
	hosts   []*model.Host
	busy    uint32              // what the host is told that a copy comes to next
	cookies bool                // who accepts keeps no request: SYN cookies
	taken   []int               // by host
	copies  [srv6.Copies][]byte // as they are now; nil: taken, dropped or lost
	lost    int
}

// copyMove is what happens to a copy at the host that it comes to, or on the way there.
type copyMove struct {
	copy int
	how  fateOfCopy
}

type fateOfCopy int

const (
	copyLost      fateOfCopy = iota
	copyMeetsIdle            // the host would accept a new connection
	copyMeetsBusy            // it would refuse one
	fatesOfCopy
)

// newCopyWorld begins with two copies before the first of n hosts. owner: who has the connection;
// nobody: the packet opens it.
func newCopyWorld(t *testing.T, n int, cookies bool, owner int) *copyWorld {
	w := &copyWorld{cookies: cookies, taken: make([]int, n)}
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		service := &model.HostService{Policy: acceptance.Policy{Kind: acceptance.Static,
			Threshold: 1}}
		w.hosts = append(w.hosts, &model.Host{
			Interfaces:     map[uint32]struct{}{1: {}},
			SIDs:           []model.LocalSID{{Prefix: locator(i), Behavior: srv6.EndOFFER}},
			Refusal:        10 * time.Second,
			Block:          block,
			Infrastructure: []netip.Prefix{netip.PrefixFrom(packettest.EdgeAddr, 128)},
			Services: map[model.ServiceKey]*model.HostService{
				{Addr: packettest.VIP6, Port: 80, Protocol: 6}: service},
			Sockets: func(packetflow.Tuple) model.Socket {
				switch {
				case owner == i:
					return model.Socket{State: model.SocketOther}
				case owner == nobody && w.taken[i] > 0 && !w.cookies:
					return model.Socket{State: model.SocketNewSynRecv}
				}
				return model.Socket{State: model.SocketListen}
			},
			Busy: func(model.ServiceKey) uint32 { return w.busy },
			NextHop: func(netip.Addr, uint8) model.NextHop {
				return model.NextHop{Status: model.NextHopKernel}
			},
		})
	}
	packet := packettest.Web6("S")
	if owner != nobody {
		packet = packettest.Web6("A")
	}
	for k := range w.copies {
		carrier := [16]byte{0xfc, 0xbb, 0xbb, 0x00}
		for i := range n {
			binary.BigEndian.PutUint16(carrier[4+2*i:], uint16(i+1))
		}
		binary.BigEndian.PutUint16(carrier[14:], uint16(srv6.CopyMark(k)))
		w.copies[k] = packettest.FromClient().Frame(t,
			packettest.To(netip.AddrFrom16(carrier)).Around(t, packet.Bytes(t)))
	}
	return w
}

func locator(host int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfc, 0xbb, 0xbb, 0x00, 5: byte(host + 1)}),
		48)
}

// move lets a copy come to its next host.
func (w *copyWorld) move(m copyMove) {
	frame := w.copies[m.copy]
	w.copies[m.copy] = nil
	if m.how == copyLost {
		w.lost++
		return
	}
	w.busy = map[fateOfCopy]uint32{copyMeetsIdle: 0, copyMeetsBusy: 1}[m.how]
	host := int(frame[14+24+5]) - 1
	switch r := w.hosts[host].Process(1, 0, frame); {
	case r.Taken:
		w.taken[host]++
	case r.Verdict != model.Drop:
		w.copies[m.copy] = r.Frame
	}
}

// Two copies of a packet are taken once, by one host, unless both are lost: for all orders in which
// they come to hosts, all that these decide about new connections by then, losses everywhere, and
// hosts that keep no request of a connection that they accept. The hosts are the model of the
// program, to which it is compared packet by packet.
func TestCopiesAreTakenOnce(t *testing.T) {
	for _, test := range []struct {
		hosts   int
		cookies bool
		owner   int
	}{{1, false, nobody}, {2, false, nobody}, {2, true, nobody}, {3, false, nobody},
		{3, true, nobody}, {3, false, 0}, {3, false, 1}, {3, false, 2}} {
		runs := 0
		var explore func(moves []copyMove)
		explore = func(moves []copyMove) {
			w := newCopyWorld(t, test.hosts, test.cookies, test.owner)
			for _, m := range moves {
				w.move(m)
			}
			sum := 0
			for _, n := range w.taken {
				sum += n
			}
			ended := true
			for k, frame := range w.copies {
				for how := range fatesOfCopy {
					if frame != nil {
						ended = false
						explore(append(slices.Clone(moves), copyMove{k, how}))
					}
				}
			}
			if runs++; sum > 1 || ended && sum == 0 && w.lost < srv6.Copies {
				t.Fatalf("%+v: taken %v times after %v, %d lost", test, w.taken, moves, w.lost)
			}
		}
		explore(nil)
		t.Logf("%+v: %d states", test, runs)
	}
}
