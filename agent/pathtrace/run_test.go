package pathtrace

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/packet/cflb"
)

// tree is a Wire to a network of two levels with two choices each, whose time is its own: routers
// 1, 2a or 2b, 3aa to 3bb, 4, then the destination. The link to router lossy loses some packets.
// Each router answers one probe a second.
type tree struct {
	codec    *cflb.Codec
	dst      netip.Addr
	lossy    string
	share    float64
	random   *rand.Rand
	now      time.Time
	answers  []Answer
	answered map[string]time.Time
}

func (w *tree) Now() time.Time { return w.now }

func routerAddress(name string) netip.Addr {
	h := byte(0)
	for _, c := range []byte(name) {
		h = h*31 + c
	}
	return netip.AddrFrom4([4]byte{192, 0, 2, h})
}

func (w *tree) Send(octets []byte) error {
	src, _ := netip.AddrFromSlice(octets[12:16])
	p := cflb.Packet{Src: src, Dst: w.dst, Protocol: octets[9], HasPorts: true,
		SrcPort: binary.BigEndian.Uint16(octets[20:]),
		DstPort: binary.BigEndian.Uint16(octets[22:]), HopLimit: octets[8]}
	a := Answer{Number: binary.BigEndian.Uint32(octets[24:])}
	router, choices := "1", ""
	for range 4 {
		if p.HopLimit == 1 {
			if w.now.Sub(w.answered[router]) >= time.Second {
				w.answered[router] = w.now
				a.From = routerAddress(router)
				w.answers = append(w.answers, a)
			}
			return nil
		}
		if router[0] < '3' {
			digit, choice, _ := w.codec.Digit(p, 1)
			if choice != cflb.Controlled || digit > 1 {
				return fmt.Errorf("router %s: digit %d, %s", router, digit, choice)
			}
			choices += string("ab"[digit])
		}
		router = string(router[0]+1) + choices
		if router[0] == '4' {
			router = "4"
		}
		if router == w.lossy && w.random.Float64() < w.share {
			return nil
		}
		p.HopLimit--
	}
	a.From, a.Arrived = w.dst, true
	w.answers = append(w.answers, a)
	return nil
}

func (w *tree) Receive(within time.Duration) (netip.Addr, uint8, []byte, bool, error) {
	if len(w.answers) == 0 {
		w.now = w.now.Add(within)
		return netip.Addr{}, 0, nil, false, nil
	}
	a := w.answers[0]
	w.answers = w.answers[1:]
	w.now = w.now.Add(time.Millisecond)
	if a.Arrived {
		tcp := make([]byte, 20)
		binary.BigEndian.PutUint32(tcp[8:], a.Number+1)
		tcp[13] = flagRST | flagACK
		return a.From, protocolTCP, tcp, true, nil
	}
	icmp := make([]byte, 8+20+8)
	icmp[0], icmp[8] = 11, 0x45
	copy(icmp[8+16:], w.dst.AsSlice())
	binary.BigEndian.PutUint32(icmp[8+20+4:], a.Number)
	return a.From, protocolICMP, icmp, true, nil
}

// A link that loses some packets, or all, is found wherever it is, with the paths that cross it.
func TestRun(t *testing.T) {
	codec, err := cflb.New(cflb.Defaults(cflb.SourcePort, 2, [cflb.KeyLength]byte{3}))
	if err != nil {
		t.Fatal(err)
	}
	dst := netip.MustParseAddr("198.51.100.1")
	for _, test := range []struct {
		lossy string
		share float64
		paths []int
		onset int
	}{
		{"", 0, []int{}, -1},
		{"2a", 1, []int{0, 1}, 1},
		{"2b", 0.4, []int{2, 3}, 1},
		{"3ab", 1, []int{1}, 2},
		{"3ba", 0.4, []int{2}, 2},
		{"4", 0.5, []int{0, 1, 2, 3}, 3},
	} {
		t.Run(test.lossy, func(t *testing.T) {
			w := &tree{codec: codec, dst: dst, lossy: test.lossy, share: test.share,
				random: rand.New(rand.NewPCG(1, 1)), now: time.Unix(1e9, 0),
				answered: map[string]time.Time{}}
			got, err := Run(w, Plan{Codec: codec, Src: netip.MustParseAddr("203.0.113.9"),
				Dst: dst, Port: 80, Choices: []int{2, 2}},
				Options{Probes: 30, Routers: 30, Wait: time.Second, Pace: 1100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Lossy, test.paths) || got.Onset != test.onset {
				t.Errorf("lossy %v at %d, want %v at %d: %+v", got.Lossy, got.Onset, test.paths,
					test.onset, got.Paths)
			}
			for i, path := range got.Paths {
				if path.Sent != 30 || test.share == 0 && path.Answered != 30 {
					t.Errorf("path %v: %d of %d answered", path.Choices, path.Answered, path.Sent)
				}
				a, b := string("ab"[i/2]), string("ab"[i%2])
				want := []netip.Addr{routerAddress("1"), routerAddress("2" + a),
					routerAddress("3" + a + b), routerAddress("4"), dst}
				if test.share == 0 && !slices.Equal(path.Hops, want) {
					t.Errorf("path %v: %v, want %v", path.Choices, path.Hops, want)
				}
			}
		})
	}
}

// However many answers of a router behind a lossy link get lost, or come by luck, the link is
// found, and the router is named on all paths that cross it.
func TestRunNamesRoutersBehindLoss(t *testing.T) {
	codec, err := cflb.New(cflb.Defaults(cflb.SourcePort, 2, [cflb.KeyLength]byte{3}))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(100) {
		w := &tree{codec: codec, dst: netip.MustParseAddr("198.51.100.1"), lossy: "2b", share: 0.5,
			random: rand.New(rand.NewPCG(seed, 2)), now: time.Unix(1e9, 0),
			answered: map[string]time.Time{}}
		got, err := Run(w, Plan{Codec: codec, Src: netip.MustParseAddr("203.0.113.9"), Dst: w.dst,
			Port: 80, Choices: []int{2, 2}},
			Options{Probes: 30, Routers: 30, Wait: time.Second, Pace: 1100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if got.Onset != 1 {
			t.Errorf("seed %d: losses begin at %d, want 1", seed, got.Onset)
		}
		for _, path := range got.Paths[2:] {
			if got := path.Hops[1]; got != routerAddress("2b") {
				t.Errorf("seed %d, path %v: the second router is %v", seed, path.Choices, got)
			}
		}
	}
}
