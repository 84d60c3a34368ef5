package southbound_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundpb"
	"sextant/agent/southbound/southboundtest"
	"sextant/packet/flow"
)

// table is a head-end's.
type table struct {
	southbound.Headend

	mutex sync.Mutex
	paths map[flow.Tuple]southbound.Path
	sets  int

	filters chan *filter // nil: there are none
	setting func()       // is called when a path is set; nil: nothing is
}

func (h *table) SetPath(_ context.Context, p southbound.Path) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.paths[p.Flow] = p
	h.sets++
	if h.setting != nil {
		h.setting()
	}
	return nil
}

// Filter gives sockets filters that make what a test says.
func (h *table) Filter(context.Context, *net.UDPConn, flow.Secret) (southbound.Filter, error) {
	if h.filters == nil {
		return nil, errors.New("no filters here")
	}
	f := &filter{}
	h.filters <- f
	return f, nil
}

// filter is one that a test looks at.
type filter struct {
	mutex         sync.Mutex
	allowed, over bool
	after, made   uint64
	least         time.Duration
}

func (f *filter) Allow(after uint64, least time.Duration) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.allowed, f.after, f.least = true, after, least
	return nil
}

func (f *filter) Deny() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.allowed, f.after = false, 0
	return nil
}

func (f *filter) Made() (uint64, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.made, nil
}

func (f *filter) Close() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.over = true
}

// makes has the filter make a change, if it may.
func (f *filter) makes(t *testing.T, number uint64) {
	t.Helper()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.allowed || number != max(f.made, f.after)+1 {
		t.Fatalf("change %d can't be made: %+v", number, f)
	}
	f.made = number
}

func (h *table) Held(context.Context) ([]southbound.Path, []netip.Prefix, error) {
	return nil, nil, nil
}

// teller is a controller that says what a test says.
type teller struct {
	southboundpb.UnimplementedSouthboundServer
	streams chan southboundpb.Southbound_FollowServer
}

func (c *teller) Follow(s southboundpb.Southbound_FollowServer) error {
	c.streams <- s
	<-s.Context().Done()
	return nil
}

// told is one stream of a teller.
type told struct {
	t      *testing.T
	stream southboundpb.Southbound_FollowServer
	hello  *southboundpb.Hello
	to     net.Conn
}

// listenTeller begins a controller in a folder that has its certificate.
func listenTeller(t *testing.T, dir string) (*teller, string) {
	t.Helper()
	tls, err := southbound.Files{CA: filepath.Join(dir, "ca.pem"),
		Certificate: filepath.Join(dir, "controller.pem"),
		Key:         filepath.Join(dir, "controller.key")}.Server()
	must(t, err)
	port, err := net.Listen("tcp", "[::1]:0")
	must(t, err)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(tls)))
	c := &teller{streams: make(chan southboundpb.Southbound_FollowServer)}
	southboundpb.RegisterSouthboundServer(server, c)
	go func() { _ = server.Serve(port) }() // ends with Stop
	t.Cleanup(server.Stop)
	return c, port.Addr().String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// accept takes the stream of a head-end, and claims it.
func (c *teller) accept(t *testing.T, epoch uint64) *told {
	t.Helper()
	s := &told{t: t, stream: <-c.streams}
	s.hello = s.next().GetHello()
	var err error
	s.to, err = net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv6loopback,
		Port: int(s.hello.GetDatagrams().GetPort())})
	must(t, err)
	t.Cleanup(func() { s.to.Close() })
	must(t, s.stream.Send(&southboundpb.FromController{Message: &southboundpb.FromController_Claim{
		Claim: &southboundpb.Claim{Epoch: epoch, LeaseMs: 60000}}}))
	if standing := s.next().GetStanding(); !standing.GetFollowed() {
		t.Fatalf("not followed: %v", standing)
	}
	return s
}

func (s *told) next() *southboundpb.FromHeadend {
	s.t.Helper()
	m, err := s.stream.Recv()
	if err == io.EOF {
		s.t.Fatal("the head-end has ended the stream")
	}
	must(s.t, err)
	return m
}

// applied fails unless the next answer is that to a change, and returns what it refuses.
func (s *told) applied(number uint64) []*southboundpb.Refusal {
	s.t.Helper()
	a := s.next().GetApplied()
	if a.GetNumber() != number {
		s.t.Fatalf("answered %v, not %d", a, number)
	}
	return a.GetRefused()
}

func (s *told) byStream(c *southboundpb.Change) {
	s.t.Helper()
	must(s.t, s.stream.Send(&southboundpb.FromController{
		Message: &southboundpb.FromController_Change{Change: c}}))
}

func (s *told) write(datagram []byte) {
	s.t.Helper()
	_, err := s.to.Write(datagram)
	must(s.t, err)
}

// sealed is a change as a datagram, made by what southbound.proto says.
func (s *told) sealed(c *southboundpb.Change) []byte {
	s.t.Helper()
	return sealed(s.hello.GetDatagrams().GetKey(), c)
}

func sealed(key []byte, c *southboundpb.Change) []byte {
	set := c.GetSet()[0]
	f := set.GetFlow()
	b := binary.BigEndian.AppendUint64(nil, c.GetNumber())
	ipv4 := byte(0)
	for _, address := range [][]byte{f.GetSource(), f.GetDestination()} {
		if len(address) == 4 {
			ipv4 = 1
			b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff)
		}
		b = append(b, address...)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(f.GetSourcePort()))
	b = binary.BigEndian.AppendUint16(b, uint16(f.GetDestinationPort()))
	b = append(b, byte(f.GetProtocol()), ipv4, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(set.GetHoldMs()))
	b = append(b, 0, 0, 0, 0)
	for _, segment := range set.GetSegments() {
		b = append(b, segment...)
	}
	b = append(b, make([]byte, 16*(6-len(set.GetSegments())))...)
	return binary.LittleEndian.AppendUint64(b, flow.SipHash24(flow.Secret(key), b))
}

var datagramFlow = flow.Tuple{Src: netip.MustParseAddr("2001:db8::1"), SrcPort: 1000, Protocol: 6,
	Dst: netip.MustParseAddr("2001:db8::2"), DstPort: 80}

// change gives the flow a path over one segment.
func change(number uint64, segment string) *southboundpb.Change {
	return &southboundpb.Change{Number: number, Set: []*southboundpb.FlowPath{
		southbound.PathMessage(southbound.Path{Flow: datagramFlow, Hold: time.Hour,
			Segments: []netip.Addr{netip.MustParseAddr(segment)}})}}
}

// TestDatagrams has a head-end get changes ahead of its stream: one that is the next is made once,
// and answered; what is repeated, forged, altered, too early, or of a controller that is not
// followed changes nothing, and the stream is right.
func TestDatagrams(t *testing.T) {
	dir := identities(t)
	first, firstAddress := listenTeller(t, dir)
	second, secondAddress := listenTeller(t, dir)
	h := &table{paths: map[flow.Tuple]southbound.Path{}}
	follower := follow(t, dir, h, true, firstAddress, secondAddress)
	has := func(segment string, sets int) {
		t.Helper()
		h.mutex.Lock()
		defer h.mutex.Unlock()
		if p := h.paths[datagramFlow]; h.sets != sets || p.Segments[0].String() != segment {
			t.Fatalf("set %d times, now over %v; want %d, %s", h.sets, p.Segments, sets, segment)
		}
	}
	one := first.accept(t, 1)

	datagram := one.sealed(change(1, "fc00::1"))
	one.write(datagram)
	one.applied(1)
	has("fc00::1", 1)
	one.byStream(change(1, "fc00::bad")) // which no controller sends
	one.byStream(change(2, "fc00::2"))
	one.applied(2)
	has("fc00::2", 2)

	one.write(datagram)
	one.write(one.sealed(change(9, "fc00::bad")))
	third := one.sealed(change(3, "fc00::3"))
	seal, err := southbound.NewSeal(one.hello.GetDatagrams().GetKey())
	must(t, err)
	for i, octets := range altered(third) {
		if c, err := seal.Open(octets); err == nil {
			t.Errorf("altered datagram %d is read as %v", i, c)
		}
		if i%8 == 0 {
			one.write(octets)
		}
	}
	one.byStream(change(3, "fc00::3"))
	one.applied(3)
	has("fc00::3", 3)
	one.write(one.sealed(change(4, "fc00::4")))
	one.applied(4)
	has("fc00::4", 4)

	two := second.accept(t, 2)
	two.write(two.sealed(change(1, "fc00::5")))
	two.applied(1)
	has("fc00::5", 5)
	two.write(one.sealed(change(5, "fc00::bad"))) // of another stream
	one.write(one.sealed(change(5, "fc00::bad"))) // is not followed any more
	one.byStream(change(5, "fc00::bad"))
	if refused := one.applied(5); len(refused) != 1 {
		t.Errorf("refused %v", refused)
	}
	has("fc00::5", 5)
	for i, want := range []uint64{2, 1} {
		if l := follower.Links()[i]; l.Early != want {
			t.Errorf("controller %d: %d changes came early, not %d", i, l.Early, want)
		}
	}
	if follower.Links()[0].Forged == 0 {
		t.Error("no forged datagram is counted")
	}
}

// identities is a folder with what a controller and a router prove who they are by.
func identities(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	authority := southboundtest.NewAuthority(t, dir)
	authority.Leaf(t, "controller", netip.IPv6Loopback())
	authority.Leaf(t, "router")
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("word"), 0o600))
	return dir
}

// follow has a head-end follow controllers until the end of the test.
func follow(t *testing.T, dir string, h *table, datagrams bool,
	controllers ...string) *southbound.Follower {
	follower := southbound.Follow(southbound.Options{Controllers: controllers, Router: "r",
		TokenFile: filepath.Join(dir, "token"), Headend: h, Log: slog.New(slog.DiscardHandler),
		Datagrams: datagrams, TLS: southbound.Files{CA: filepath.Join(dir, "ca.pem"),
			Certificate: filepath.Join(dir, "router.pem"), Key: filepath.Join(dir, "router.key")}})
	t.Cleanup(follower.Stop)
	return follower
}

// TestWithoutDatagrams has a head-end that wants none offer no port, and take changes by the
// stream.
func TestWithoutDatagrams(t *testing.T) {
	dir := identities(t)
	controller, address := listenTeller(t, dir)
	h := &table{paths: map[flow.Tuple]southbound.Path{}}
	follow(t, dir, h, false, address)
	one := controller.accept(t, 1)
	if one.hello.GetDatagrams() != nil {
		t.Errorf("the hello offers %v", one.hello.GetDatagrams())
	}
	one.byStream(change(1, "fc00::1"))
	refused := one.applied(1)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(refused) != 0 || h.sets != 1 {
		t.Errorf("refused %v, set %d times", refused, h.sets)
	}
}

// TestFilteredDatagrams has a head-end know of what its filters have made: such a change is
// answered, and not made again, whether its datagram or the stream is read first. A filter makes
// changes while its controller is followed only, after the last one that the head-end has made.
func TestFilteredDatagrams(t *testing.T) {
	dir := identities(t)
	first, firstAddress := listenTeller(t, dir)
	second, secondAddress := listenTeller(t, dir)
	h := &table{paths: map[flow.Tuple]southbound.Path{}, filters: make(chan *filter, 2)}
	alone := follow(t, dir, h, true, firstAddress)
	one, of := first.accept(t, 1), <-h.filters
	is := func(f *filter, allowed bool, after uint64) {
		t.Helper()
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if f.allowed != allowed || f.after != after || allowed && f.least != time.Minute {
			t.Fatalf("%+v; want allowed %t, after %d", f, allowed, after)
		}
	}
	sets := func(want int) {
		t.Helper()
		h.mutex.Lock()
		defer h.mutex.Unlock()
		if h.sets != want {
			t.Fatalf("the head-end has made %d changes, not %d", h.sets, want)
		}
	}
	is(of, true, 0)
	of.makes(t, 1)
	one.write(one.sealed(change(1, "fc00::1")))
	one.applied(1)
	of.makes(t, 2)
	one.byStream(change(1, "fc00::1"))
	one.byStream(change(2, "fc00::2"))
	one.applied(2)
	sets(0)
	h.setting = func() {
		of.mutex.Lock()
		defer of.mutex.Unlock()
		if of.allowed {
			t.Error("a filter may make a later change of a flow before an earlier one is made")
		}
	}
	one.byStream(change(3, "fc00::3"))
	one.applied(3)
	h.setting = nil
	sets(1)
	is(of, true, 3)
	if l := alone.Links()[0]; l.Filtered != 2 || l.Early != 0 || l.Applied != 3 {
		t.Errorf("%+v", l)
	}
	alone.Stop()
	of.mutex.Lock()
	if !of.over {
		t.Error("the filter is not closed")
	}
	of.mutex.Unlock()

	follow(t, dir, h, true, firstAddress, secondAddress)
	one, of = first.accept(t, 1), nil
	two := second.accept(t, 2)
	filters := []*filter{<-h.filters, <-h.filters}
	for _, f := range filters {
		f.mutex.Lock()
		if !f.allowed {
			of = f
		}
		f.mutex.Unlock()
	}
	if of == nil || filters[0].allowed == filters[1].allowed {
		t.Fatal("of two controllers, not one has a filter that may make changes")
	}
	of.mutex.Lock()
	of.made = 1 // just before it was followed no more
	of.mutex.Unlock()
	one.byStream(change(1, "fc00::1"))
	one.byStream(change(2, "fc00::2"))
	if refused := one.applied(1); len(refused) != 0 {
		t.Errorf("refused what is in force: %v", refused)
	}
	if refused := one.applied(2); len(refused) != 1 {
		t.Errorf("refused %v", refused)
	}
	is(of, false, 0)
	sets(1)
	two.byStream(change(1, "fc00::5"))
	two.applied(1)
	sets(2)
}

// FuzzDatagram holds datagrams that are read against those that are made: what the code is right
// for is made the same again, and all else is refused.
func FuzzDatagram(f *testing.F) {
	key := make([]byte, 16)
	ipv4 := change(5, "fc00::1")
	ipv4.Set[0].Flow.Source = []byte{192, 0, 2, 1}
	ipv4.Set[0].Flow.Destination = []byte{192, 0, 2, 2}
	for _, c := range []*southboundpb.Change{change(1, "fc00::1"), ipv4} {
		b := sealed(key, c)
		f.Add(b[:len(b)-8], true)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, rightly bool) {
		if rightly {
			b = binary.LittleEndian.AppendUint64(b, flow.SipHash24(flow.Secret(key), b))
		}
		seal, err := southbound.NewSeal(key)
		must(t, err)
		c, err := seal.Open(b)
		if err != nil {
			return
		}
		again := seal.Datagram(c)
		if again == nil { // of what no controller sends
			return
		}
		read, err := seal.Open(again)
		if err != nil || !proto.Equal(read, c) {
			t.Errorf("%v is read as %v, %v", c, read, err)
		}
	})
}

// altered is a datagram with each of its bits changed, cut short anywhere, or made longer.
func altered(datagram []byte) (all [][]byte) {
	for bit := range 8 * len(datagram) {
		one := slices.Clone(datagram)
		one[bit/8] ^= 1 << (bit % 8)
		all = append(all, one)
	}
	for length := range len(datagram) {
		all = append(all, datagram[:length])
	}
	return append(all, append(slices.Clone(datagram), 0), append(slices.Clone(datagram),
		make([]byte, 9000)...))
}
