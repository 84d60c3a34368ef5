package collector

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sextant/packet/telemetry"
)

// TestReceiveBuffer: with the privilege for it, the kernel holds as many octets as asked for,
// whatever net.core.rmem_max is. It counts its own memory in, and says twice as much (socket(7)).
func TestReceiveBuffer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("without CAP_NET_ADMIN the buffer is net.core.rmem_max")
	}
	r, err := Listen(netip.MustParseAddrPort("[::1]:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	size := 0
	control := r.raw.Control(func(fd uintptr) {
		size, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	})
	if control != nil || err != nil {
		t.Fatal(control, err)
	}
	if size != 2*receiveBuffer {
		t.Errorf("%d octets, want %d", size, 2*receiveBuffer)
	}
}

// TestClockSetBack: an exporter that restarts after the clock was set back by an hour is believed,
// and what is shown has the time of the clock.
func TestClockSetBack(t *testing.T) {
	const second = int64(time.Second)
	var shown []int64
	table := NewTable(Options{Watch: func(r *Report) { shown = append(shown, r.TimeNS) }})
	take := func(number uint32, now Moment) {
		t.Helper()
		group, err := telemetry.Group{Sequence: number}.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		octets, err := telemetry.Report{Type: telemetry.RepINT}.Append(group)
		if err != nil {
			t.Fatal(err)
		}
		b := newBatch()
		b.kind, b.count = FromReport, 1
		b.names[0].Family = unix.AF_INET6
		b.messages[0].length = uint32(copy(b.octets[0][:], octets))
		table.Take(b, now)
	}
	const noon = 1_800_000_000 * second
	var want []int64
	for n := range int64(1000) {
		take(uint32(n), Moment{noon + n, n})
		want = append(want, noon+n)
	}
	for n := range int64(300) {
		now := Moment{noon - 3600*second + n, 2*second + n}
		take(uint32(n), now)
		if n > 0 { // its first number is not believed
			want = append(want, now.PosixNS)
		}
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("times of reports (-want +got):\n%s", diff)
	}
	table.EachExporter(func(_ Exporter, s *Sequence, seenNS int64) {
		if s.Restarts != 1 || seenNS != 2*second+299 {
			t.Errorf("%+v, last seen at %d", s, seenNS)
		}
	})
}
