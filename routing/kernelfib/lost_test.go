package kernelfib

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux/linuxtest"
	"sextant/routing/rib"
)

// A source that could not follow knows no route that went while messages were lost, though the last
// that it was told of it is that it came.
func TestLostMessages(t *testing.T) {
	ns, _ := linuxtest.Netns(t)
	var s *Source
	ip := func(lines ...string) {
		t.Helper()
		err := ns.Do(func() error { return linuxtest.IP(strings.Join(lines, "\n")) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := ns.Do(func() (err error) {
		s, err = Watch([]uint32{10}, slog.New(slog.NewTextHandler(t.Output(), nil)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.socket.control(false, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10)
	}); err != nil {
		t.Fatal(err)
	}
	ip("link set lo up")
	awaitRoutes(t, s) // none

	route := func(i int) string {
		return fmt.Sprintf("2001:db8:80::%x table 10 encap seg6 mode encap segs fcbb:bb00:1:: "+
			"dev lo", i)
	}
	s.mu.Lock() // the source takes no message
	lines := []string{"-6 route add " + route(1), "-6 route add " + route(2)}
	for i := range 500 {
		lines = append(lines, "-6 route add "+route(i+0x100))
	}
	for i := range 500 {
		lines = append(lines, "-6 route del "+route(i+0x100))
	}
	ip(append(lines, "-6 route del "+route(2), "-6 route add "+route(3))...)
	s.mu.Unlock()
	awaitRoutes(t, s, "2001:db8:80::1/128", "2001:db8:80::3/128")
	if s.Resyncs() == 0 {
		t.Error("no message was lost: the test shows nothing")
	}
}

// awaitRoutes waits until a source has these routes and no others.
func awaitRoutes(t *testing.T, s *Source, want ...string) {
	t.Helper()
	known := map[string]bool{}
	for end := time.After(time.Minute); ; {
		changes, complete := s.Take()
		for _, c := range changes {
			known[c.Prefix.String()] = true
			if c.Set == (rib.Set{}) {
				delete(known, c.Prefix.String())
			}
		}
		missing := len(known) != len(want)
		for _, w := range want {
			missing = missing || !known[w]
		}
		if complete && !missing {
			return
		}
		select {
		case <-s.Changes():
		case <-end:
			t.Fatalf("it knows %v, want %v", known, want)
		}
	}
}
