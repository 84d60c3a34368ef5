package agent

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sextant/agent/state"
	"sextant/config"
)

const storedNode = `
node: web1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
host:
  interfaces: [{name: eth0}]
  sids: [{prefix: "fcbb:bb00:1::/48", behavior: End.OFFER}]
`

func parseNode(text string) (*config.Node, error) { return config.Parse("node.yaml", []byte(text)) }

// saveForEver saves one of two states after the other, and says so. They differ in length, so that
// a mixture is no state.
func saveForEver(dir string) error {
	file, err := parseNode(storedNode)
	if err != nil {
		return err
	}
	s, err := state.Open(dir, file.Name, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	long := file.Clone()
	for i := range 200 {
		long.Host.Services = append(long.Host.Services, config.HostService{
			Name: fmt.Sprintf("s%d", i), Accept: config.Accept{Policy: config.Always},
			Endpoint: config.Endpoint{VIP: long.Domain.Infrastructure[0].Addr().Next(),
				Protocol: config.TCP, Port: uint16(i + 1)},
		})
	}
	for n := uint32(1); ; n++ {
		s.Kept.HostServices["generation"] = n
		if err := s.Save(file, []*config.Node{file, long}[n%2]); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// Whenever a process that saves is killed, what it leaves is one of its states, whole, and not
// older than the last that it told of.
func TestStateSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	for round := range 20 {
		cmd := exec.Command(os.Args[0], "helper", "save", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told := uint32(0)
		for lines := bufio.NewScanner(out); told < uint32(round+1) && lines.Scan(); {
			fmt.Sscan(lines.Text(), &told)
		}
		cmd.Process.Kill()
		cmd.Wait()
		text, err := os.ReadFile(filepath.Join(dir, "web1.json"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := state.Open(dir, "web1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, text)
		}
		if got := s.Kept.HostServices["generation"]; told == 0 || got < told {
			t.Errorf("round %d: generation %d is kept, %d was told", round, got, told)
		}
		if want := []int{0, 200}[s.Kept.HostServices["generation"]%2]; strings.Count(s.Kept.Node,
			"- name: s") != want {
			t.Errorf("round %d: %d services are kept, want %d", round,
				strings.Count(s.Kept.Node, "- name: s"), want)
		}
		s.Close()
	}
}

// What was changed at run time outlives a restart as long as the node file is the same.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	file, err := parseNode(storedNode)
	if err != nil {
		t.Fatal(err)
	}
	changed := file.Clone()
	changed.Domain.MTU = 9000
	s, err := state.Open(dir, file.Name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save(file, changed); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Open(dir, file.Name, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "another agent of this node runs; stop it first") {
		t.Errorf("the state was opened twice: error %v", err)
	}
	s.Close()
	s, err = state.Open(dir, file.Name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if resumed, err := s.Resume(file, slog.New(slog.DiscardHandler)); err != nil ||
		resumed.Domain.MTU != 9000 || resumed.Secret != file.Secret {
		t.Errorf("resumed %+v, error %v; want the change", resumed, err)
	}
	other := file.Clone()
	other.Domain.MTU = 4000
	if resumed, err := s.Resume(other, slog.New(slog.DiscardHandler)); err != nil ||
		resumed.Domain.MTU != 4000 {
		t.Errorf("resumed %+v, error %v; want the new file", resumed, err)
	}
}

func TestNumberServices(t *testing.T) {
	endpoint := func(port uint16) config.Endpoint {
		return config.Endpoint{Protocol: config.TCP, Port: port}
	}
	known := map[string]uint32{endpoint(1).String(): 1, endpoint(2).String(): 2}
	numbers, fresh, err := state.NumberServices(known,
		[]config.Endpoint{endpoint(3), endpoint(2)}, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if numbers[endpoint(2).String()] != 2 || numbers[endpoint(3).String()] != 3 ||
		len(numbers) != 2 || len(fresh) != 1 {
		t.Errorf("numbers %v, fresh %v; want the old number, and one that nobody had", numbers,
			fresh)
	}
	all := make([]config.Endpoint, 1024)
	for i := range all {
		all[i] = endpoint(uint16(i + 1))
	}
	if numbers, _, err = state.NumberServices(known, all[1:], 1024); err != nil {
		t.Fatal(err)
	}
	if n := numbers[all[1023].String()]; n != 1 {
		t.Errorf("the last service has number %d, want 1, which endpoint 1 no longer needs", n)
	}
	state.Adopt(known, numbers)
	if _, remembered := known[all[0].String()]; remembered {
		t.Error("two endpoints have number 1")
	}
	if _, _, err := state.NumberServices(known, all, 1024); err == nil {
		t.Error("1024 services have numbers")
	}
}

func TestNumberSID(t *testing.T) {
	file, err := parseNode(storedNode)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]uint16{}
	var ids []uint16
	for _, text := range []string{"fcbb:bb00:7::", "2001:db8::1", "2001:db8::2", "2001:db8::1"} {
		sid, err := config.ParseSID(text)
		if err != nil {
			t.Fatal(err)
		}
		id, err := state.NumberSID(known, file.Domain.Block, sid)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if want := []uint16{7, 0xe000, 0xe001, 0xe000}; !slices.Equal(ids, want) {
		t.Errorf("ids %#x, want %#x", ids, want)
	}
	for i := range 8192 - 2 {
		if _, err := state.NumberSID(known, file.Domain.Block, netip.AddrFrom16(
			[16]byte{0xfd, 14: byte(i >> 8), 15: byte(i)})); err != nil {
			t.Fatalf("SID %d: %v", i+3, err)
		}
	}
	_, err = state.NumberSID(known, file.Domain.Block, netip.MustParseAddr("2001:db8::3"))
	if !errors.Is(err, config.ErrConflict) {
		t.Errorf("SID 8193: %v, want a conflict, which is of that service alone", err)
	}
}

// SIDs of pods come and go; those that are used keep their ids.
func TestPruneSIDs(t *testing.T) {
	file, err := parseNode(storedNode)
	if err != nil {
		t.Fatal(err)
	}
	known, used := map[string]uint16{}, map[netip.Addr]bool{}
	sidOf := func(i int) netip.Addr {
		return netip.AddrFrom16([16]byte{0xfd, 14: byte(i >> 8), 15: byte(i)})
	}
	const lasting, all = 100, 30_000
	for i := range all {
		state.PruneSIDs(known, 1, func() map[netip.Addr]bool { return used })
		id, err := state.NumberSID(known, file.Domain.Block, sidOf(i))
		if err != nil {
			t.Fatalf("SID %d: %v", i+1, err)
		}
		if i < lasting {
			if used[sidOf(i)] = true; id != 0xe000+uint16(i) {
				t.Fatalf("SID %d has id %#x", i+1, id)
			}
		}
	}
	owners := map[uint16]string{}
	for sid, id := range known {
		if other, taken := owners[id]; taken {
			t.Errorf("%s and %s have id %#x", sid, other, id)
		}
		owners[id] = sid
	}
	for i := range lasting {
		if id := known[sidOf(i).String()]; id != 0xe000+uint16(i) {
			t.Errorf("SID %d has id %#x now", i+1, id)
		}
	}
}

// Whatever lies in the state directory is refused, or has numbers that fit the kernel's tables, one
// for each.
func FuzzKeptNumbers(f *testing.F) {
	f.Add([]byte(`{"edgeServices": {"a": 1, "b": 2}, "sids": {"2001:db8::1": 57344}}`))
	f.Add([]byte(`{"edgeServices": {"a": 1, "b": 1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := state.ParseKept(text)
		if err != nil {
			return
		}
		for _, numbers := range []map[string]uint32{k.EdgeServices, k.HostServices} {
			distinct := map[uint32]bool{}
			for _, n := range numbers {
				if distinct[n] = true; n == 0 || n >= 1<<16 {
					t.Errorf("%q has the number %d", text, n)
				}
			}
			if len(distinct) != len(numbers) {
				t.Errorf("%q has a number twice", text)
			}
		}
		distinct := map[uint16]bool{}
		for _, id := range k.SIDs {
			if distinct[id] = true; id < 0xe000 {
				t.Errorf("%q has the id %#x", text, id)
			}
		}
		if len(distinct) != len(k.SIDs) {
			t.Errorf("%q has an id twice", text)
		}
	})
}
