package bgp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/config"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/routing/bgp"
)

// A speaker can't be in a namespace of its own as long as it is part of the test's process: its
// goroutines run on any thread. So the test's program is started a second time, as a speaker and
// nothing else.

const roleVariable = "SEXTANT_TEST_SPEAKER"

// role is what such a process is told.
type role struct {
	BGP      *config.BGP
	Announce []bgp.Announcement
}

// report is a line that it prints whenever one of these changed.
type report struct {
	Sessions map[string]string // "established standing up" by neighbor
	Routes   []string          // "VIP SID weight"
	Refused  []string
	Failure  string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(roleVariable); text != "" {
		speak(text)
		return
	}
	os.Exit(m.Run())
}

func speak(text string) {
	var r role
	var s *bgp.Speaker
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		s, err = bgp.Open(bgp.Options{BGP: r.BGP,
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	}
	if err == nil {
		err = s.SetNeighbors(r.BGP.Neighbors)
	}
	if err == nil {
		err = s.Announce(r.Announce)
	}
	out := json.NewEncoder(os.Stdout)
	if err != nil {
		out.Encode(report{Failure: err.Error()})
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGTERM)
	last := ""
	for again := time.Tick(20 * time.Millisecond); ; {
		now := look(s)
		if text := fmt.Sprint(now); text != last {
			last = text
			out.Encode(now)
		}
		select {
		case <-ended:
			s.Close(false)
			return
		case <-s.Changes():
		case <-again:
		}
	}
}

func look(s *bgp.Speaker) report {
	peers, err := s.Peers()
	if err != nil {
		return report{Failure: err.Error()}
	}
	table, err := s.Routes()
	if err != nil {
		return report{Failure: err.Error()}
	}
	r := report{Sessions: map[string]string{}}
	for _, p := range peers {
		r.Sessions[p.Address.String()] = strings.TrimSpace(fmt.Sprintf("%s %s %s", p.State,
			p.Session, p.BFD))
	}
	for _, route := range table.Routes {
		r.Routes = append(r.Routes, fmt.Sprintf("%s %s %d", route.Prefix.Addr(), route.SID,
			route.Weight))
	}
	for _, refusal := range table.Refused {
		r.Refused = append(r.Refused, fmt.Sprintf("%s %s", refusal.Route.Prefix, refusal.Reason))
	}
	slices.Sort(r.Routes)
	slices.Sort(r.Refused)
	return r
}

// speakerProcess is a speaker in a namespace.
type speakerProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	reports chan report
}

func startSpeaker(t *testing.T, ns *linux.Netns, r role) *speakerProcess {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &speakerProcess{t: t, cmd: exec.Command(program), reports: make(chan report, 1000)}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	p.cmd.Stderr = t.Output()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := linux.Start(p.cmd, ns, nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(p.reports)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var r report
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				p.reports <- r
			}
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-done
		p.cmd.Wait()
	})
	return p
}

// await returns the first report that fits.
func (p *speakerProcess) await(what string, fits func(report) bool) report {
	p.t.Helper()
	var last report
	for end := time.After(patience); ; {
		select {
		case r, ok := <-p.reports:
			if !ok || r.Failure != "" {
				p.t.Fatalf("the speaker ended while waiting for %s: %+v", what, r)
			}
			if last = r; fits(r) {
				return r
			}
		case <-end:
			p.t.Fatalf("never: %s; last report %+v", what, last)
		}
	}
}

// link is two namespaces with a cable between them.
type link struct {
	near, far *linux.Netns
	device    string // name of both ends
}

var (
	nearAddress, farAddress   = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	nearAddress6, farAddress6 = netip.MustParseAddr("2001:db8::1"),
		netip.MustParseAddr("2001:db8::2")
)

func newLink(t *testing.T) link {
	t.Helper()
	l := link{device: "bgp0"}
	l.near, _ = linuxtest.Netns(t)
	l.far, _ = linuxtest.Netns(t)
	must(t, l.near.Do(func() error {
		pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: l.device}, PeerName: l.device,
			PeerNamespace: netlink.NsFd(l.far.FD())}
		return netlink.LinkAdd(pair)
	}))
	must(t, l.near.Do(func() error { return setUp(l.device, nearAddress, nearAddress6) }))
	must(t, l.far.Do(func() error { return setUp(l.device, farAddress, farAddress6) }))
	return l
}

func setUp(device string, v4, v6 netip.Addr) error {
	for _, name := range []string{"lo", device} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
	}
	l, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	for _, text := range []string{v4.String() + "/24", v6.String() + "/64"} {
		address, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		address.Flags = 2 // IFA_F_NODAD: usable at once
		if err := netlink.AddrAdd(l, address); err != nil {
			return err
		}
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
