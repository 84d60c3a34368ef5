package node

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sextant/config"
	"sextant/linux/linuxtest"
)

// uid is that of no pod of this machine.
const uid = "00000000-0000-4000-8000-00000000abcd"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// given is a directory with what an earlier daemon noted of a pod.
func given(t *testing.T, dir string) (note, file string) {
	t.Helper()
	of := filepath.Join(dir, uid)
	must(t, os.Mkdir(of, 0o700))
	note, file = filepath.Join(of, "wiring.json"), filepath.Join(of, "node.yaml")
	must(t, os.WriteFile(note, []byte(`{"VIPs":["2001:db8:80::1"]}`), 0o600))
	must(t, os.WriteFile(file, []byte("node: pod\n"), 0o600))
	return note, file
}

// program is a shell script in place of sextant.
func program(t *testing.T, path, script string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}

// What could not be taken away from a pod that is gone is tried again, with all that it takes, by
// this daemon or the next.
func TestEndIsTriedAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	must(t, discoveryv1.AddToScheme(scheme))
	s := Settings{Dir: t.TempDir(), Sextant: filepath.Join(t.TempDir(), "sextant"),
		Log: slog.New(slog.DiscardHandler)}
	unloaded := filepath.Join(t.TempDir(), "unloaded")
	_, file := given(t, s.Dir)
	daemon := func() *Daemon {
		t.Helper()
		runners, err := s.leftovers(nil)
		must(t, err)
		return &Daemon{Settings: s, runners: runners, tell: make(chan struct{}, 1),
			Cache: read{from: fake.NewClientBuilder().WithScheme(scheme).Build()}}
	}
	program(t, s.Sextant, "exit 1")
	first := daemon()
	for range 2 {
		if again := first.sync(t.Context()); !again || len(first.runners) != 1 {
			t.Fatalf("tried again: %t; pods: %d, want one", again, len(first.runners))
		}
	}
	program(t, s.Sextant, fmt.Sprintf(`[ "$*" = "unload -f %s" ] && touch %s`, file, unloaded))
	for name, d := range map[string]*Daemon{"the next": daemon(), "this": first} {
		if again := d.sync(t.Context()); again || len(d.runners) != 0 {
			t.Errorf("%s daemon: tried again: %t; pods: %d", name, again, len(d.runners))
		}
	}
	if _, err := os.Stat(unloaded); err != nil {
		t.Errorf("the pod's programs are not unloaded: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("the pod's directory is there: %v", err)
	}
}

// A disk that is full leaves what was noted of a pod as it was.
func TestNotesOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	note, file := given(t, dir)
	ns, _ := linuxtest.Netns(t)
	r := &runner{Settings: Settings{Dir: dir, Locator: netip.MustParsePrefix("fd00:c0de::/64")},
		pod: Pod{UID: uid}, ns: ns}
	p := Pod{UID: uid}
	for i := range 1 << 13 {
		p.Serves = append(p.Serves, Served{Endpoint: config.Endpoint{
			VIP: netip.MustParseAddr(fmt.Sprintf("2001:db8:80::%x", i+1))}})
	}
	text := []byte(strings.Repeat("# more than there is room for\n", 1<<13))
	for name, write := range map[string]func() error{
		"wiring": func() error { return r.wire(p) },
		"start":  func() error { return r.start(t.Context(), text) },
		"apply":  func() error { return r.apply(t.Context(), text) },
	} {
		if err := write(); err == nil {
			t.Errorf("%s: it has room", name)
		}
	}
	for path, want := range map[string]string{note: `{"VIPs":["2001:db8:80::1"]}`,
		file: "node: pod\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, want %d: %v", filepath.Base(path), len(got), len(want), err)
		}
	}
}

// What a pod had goes as soon as it can, also when its wiring failed in between, and is not noted
// any more: another pod may have it.
func TestWiringAfterAFailure(t *testing.T) {
	web, pod := linuxtest.Netns(t)
	node, _ := linuxtest.Netns(t)
	must(t, node.Do(func() error {
		return linuxtest.IP("link add topod type veth peer name eth0 netns " + pod + `
link set topod up
addr add 2001:db8:10::1/64 dev topod nodad
-n ` + pod + ` link set eth0 up
-n ` + pod + ` addr add 2001:db8:10::2/64 dev eth0 nodad
-n ` + pod + ` addr add 2001:db8:10::3/64 dev eth0 nodad`)
	}))
	s := Settings{Dir: t.TempDir(), Locator: netip.MustParsePrefix("fd00:c0de::/64")}
	r := &runner{Settings: s, pod: Pod{UID: uid}, ns: web}
	wire := func(vip, address string) error {
		return node.Do(func() error {
			return r.wire(Pod{UID: uid, Addresses: []netip.Addr{netip.MustParseAddr(address)},
				Serves: []Served{{Endpoint: config.Endpoint{VIP: netip.MustParseAddr(vip)}}}})
		})
	}
	must(t, wire("2001:db8:80::1", "2001:db8:10::2"))
	if wire("2001:db8:80::2", "2001:db8:10::ff") == nil {
		t.Fatal("an address that the pod does not have is wired")
	}
	must(t, wire("2001:db8:80::3", "2001:db8:10::3"))

	var routes, addresses []byte
	must(t, node.Do(func() (err error) {
		routes, err = exec.Command("ip", "-6", "-br", "route", "show", "proto", "83").Output()
		return err
	}))
	must(t, web.Do(func() (err error) {
		addresses, err = exec.Command("ip", "-6", "-br", "address", "show", "dev", "lo").Output()
		return err
	}))
	runners, err := s.leftovers(nil)
	must(t, err)
	sid := SIDOf(s.Locator, netip.MustParseAddr("2001:db8:10::3"))
	want := wiring{VIPs: []netip.Addr{netip.MustParseAddr("2001:db8:80::3")},
		SIDs: []netip.Addr{sid}, Forwards: true}
	if diff := cmp.Diff(want, runners[uid].wiring,
		cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error("noted (-want +got):\n" + diff)
	}
	got := string(routes)
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, sid.String()) {
		t.Errorf("routes to SIDs, want one to %s:\n%s", sid, got)
	}
	if got := string(addresses); !strings.Contains(got, "2001:db8:80::3/128") ||
		strings.Contains(got, "2001:db8:80::1/128") || strings.Contains(got, "2001:db8:80::2/128") {
		t.Errorf("the pod has the addresses %s", got)
	}
}
