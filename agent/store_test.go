package agent

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
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

// Whatever lies in the state directory is refused, or has numbers that fit the kernel's tables, one
// for each.
func FuzzKeptNumbers(f *testing.F) {
	f.Add([]byte(`{"edgeServices": {"a": 1, "b": 2}, "sids": {"2001:db8::1": 57344}}`))
	f.Add([]byte(`{"edgeServices": {"a": 1, "b": 1}}`))
	f.Add([]byte(`{"edgeServices": {"": 1, "a": 1}}`))
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
		for sid, id := range k.SIDs.All() {
			if distinct[id] = true; id == 0 || k.SIDs.Of(id) != sid {
				t.Errorf("%q has the id %#x, which is of %s", text, id, k.SIDs.Of(id))
			}
		}
		if len(distinct) != k.SIDs.Len() {
			t.Errorf("%q has an id twice", text)
		}
	})
}
