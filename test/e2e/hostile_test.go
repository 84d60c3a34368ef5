package e2e_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/linux/rtnetlink"
)

// speakFPM is a connection to edge1's forwarding plane manager.
func (r *routed) speakFPM() (c net.Conn) {
	r.t.Helper()
	inside(r.t, r.lab, "edge1", func() (err error) {
		c, err = net.Dial("tcp", "[::1]:2620")
		return err
	})
	return c
}

// fpmFrame is a frame with messages.
func fpmFrame(t *testing.T, messages ...rtnetlink.Message) []byte {
	t.Helper()
	b := []byte{1, 1, 0, 0}
	for _, m := range messages {
		var err error
		b, err = m.Append(b, 1, 0)
		must(t, err)
	}
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

// vipRoute is a route to the VIP by these servers, in the table of FRRouting's default VRF.
func vipRoute(kind rtnetlink.Kind, servers ...int) rtnetlink.Message {
	m := rtnetlink.Message{Kind: kind, Route: rtnetlink.Route{Table: 254,
		Prefix: netip.MustParsePrefix("2001:db8:80::80/128"), Metric: 20}}
	for _, n := range servers {
		m.Route.Hops = append(m.Route.Hops, rtnetlink.Hop{Weight: 1, Mode: rtnetlink.Encap,
			Segments: []netip.Addr{netip.MustParseAddr(webSID(n))}})
	}
	return m
}

// Clients of FPM send nonsense, end in the midst of a message, connect and say nothing, or tell of
// other tables, under downloads: none is lost, and one that makes sense is understood afterwards.
func TestHostileFPM(t *testing.T) {
	r := upRouted(t, "fpm", "main", 0)
	good := r.speakFPM()
	_, err := good.Write(fpmFrame(t, vipRoute(rtnetlink.NewRoute, 1, 2, 3, 4)))
	must(t, err)
	r.await([]int{1, 2, 3, 4}, nil)
	random := rand.New(rand.NewPCG(1, 2))
	sane := fpmFrame(t, vipRoute(rtnetlink.DelRoute, 1), vipRoute(rtnetlink.NewRoute, 4))
	malformed := uint64(0)
	result := r.download(func() {
		for i := range 200 {
			c := r.speakFPM()
			b := append([]byte(nil), sane...)
			switch i % 5 {
			case 0: // nonsense
				b = make([]byte, random.IntN(2000)+8)
				for j := range b {
					b[j] = byte(random.Uint32())
				}
				b[0] = 7
				malformed++
			case 1: // lengths that lie
				binary.NativeEndian.PutUint32(b[4:], random.Uint32()|1<<20)
				malformed++
			case 2: // cut
				b = b[:5+random.IntN(len(b)-6)]
				malformed++
			case 3: // silence
				b = nil
			case 4: // of no interest
				other := vipRoute(rtnetlink.NewRoute, 1)
				other.Route.Table = random.Uint32N(200) + 1
				b = fpmFrame(t, other)
			}
			_, _ = c.Write(b) // it may be closed already
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			_ = c.SetReadDeadline(time.Now().Add(patience))
			_, _ = c.Read(make([]byte, 1)) // until the other side has had enough
			c.Close()
		}
	})
	if result.Failed > 0 || result.Done == 0 {
		t.Errorf("%d downloads, %d failed: %v", result.Done, result.Failed, result.FirstErrors)
	}
	r.awaitSource(func(s api.RouteSource) bool {
		return s.Malformed == malformed &&
			s.Sessions == 201
	})
	good = r.speakFPM()
	defer good.Close()
	_, err = good.Write(fpmFrame(t, vipRoute(rtnetlink.NewRoute, 1, 2, 3, 4, 5),
		vipRoute(rtnetlink.NewRoute, 1, 2, 3, 4), vipRoute(rtnetlink.NewRoute, 1, 2, 3, 4, 6)))
	must(t, err)
	r.await([]int{1, 2, 3, 4, 6}, []int{1, 2, 3, 4})
}
