package lab_test

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sextant/lab"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// golden compares text with a file beside the input, or rewrites that file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// each calls test with every input in a directory of testdata.
func each(t *testing.T, pattern string, test func(t *testing.T, path string)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no input at %s (%v)", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"),
			func(t *testing.T) { test(t, path) })
	}
}

func TestFaults(t *testing.T) {
	each(t, "testdata/faults/*.yaml", func(t *testing.T, path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = lab.Parse(filepath.Base(path), data)
		var faults lab.Faults
		if !errors.As(err, &faults) {
			t.Fatalf("error is %v, want Faults", err)
		}
		golden(t, strings.TrimSuffix(path, ".yaml")+".txt", err.Error()+"\n")
	})
}

const everything = `
name: all
defaults:
  sysctls: {net.ipv4.tcp_congestion_control: cubic, net.core.somaxconn: 128}
topology:
  nodes:
    zebra:
    web:
      count: 2
      addresses: ["fd00::1:{i:x}", "192.0.2.{i}/32"]
      vips: ["2001:db8::80"]
      announce: ["fcbb:bb00:{i}::/48"]
      local: ["203.0.113.0/24"]
      sysctls: {net.core.somaxconn: "{i}"}
      files: {"conf/{i:03d}": "node {node} is {i}\n"}
      exec: ["echo {i}", [echo, "{i}", 7]]
      processes:
        - name: http{i}
          command: serve {dir} {i}
          env: {B: "{i}", A: "1"}
          ready: tcp://[fd00::1:{i:x}]:80
          restart: true
      sextant:
        node: web{i}
        api: {socket: "{dir}/agent.sock"} # a comment
        secret: 00112233445566778899001122334455
        host:
          interfaces: [{name: eth0}]
          weight: {i}
    alpha: {}
  links:
    - endpoints: ["web{i}:eth0", "zebra:web{i}"]
      rate: 1.5gbit
      burst: 64kb
      latency: 20ms
      mtu: 9000
    - endpoints: ["alpha:eth0", "zebra:alpha"]
run:
  - {node: web2, command: "echo {dir}"}
`

func TestParse(t *testing.T) {
	got, err := lab.Parse("all.yaml", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	web := func(i string) lab.NodeSpec {
		return lab.NodeSpec{
			Name: "web" + i,
			Addresses: []netip.Addr{netip.MustParseAddr("fd00::1:" + i),
				netip.MustParseAddr("192.0.2." + i)},
			VIPs:     []netip.Addr{netip.MustParseAddr("2001:db8::80")},
			Announce: []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:" + i + "::/48")},
			Local:    []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")},
			Sysctls: []lab.Sysctl{
				{Name: "net.core.somaxconn", Value: "128"},
				{Name: "net.ipv4.tcp_congestion_control", Value: "cubic"},
				{Name: "net.core.somaxconn", Value: i},
			},
			Files: []lab.File{{Name: "conf/00" + i, Content: "node {node} is " + i + "\n"}},
			Exec:  []lab.Command{{Shell: "echo " + i}, {Args: []string{"echo", i, "7"}}},
			Processes: []lab.ProcessSpec{{
				Name:    "http" + i,
				Command: lab.Command{Shell: "serve {dir} " + i},
				Env:     []string{"A=1", "B=" + i},
				Ready:   lab.Ready{Kind: lab.ReadyTCP, Target: "[fd00::1:" + i + "]:80"},
				Restart: true,
			}},
			Sextant: "node: web" + i + `
api: {socket: "{dir}/agent.sock"}
secret: 00112233445566778899001122334455
host:
  interfaces: [{name: eth0}]
  weight: ` + i,
		}
	}
	link := func(i string) lab.LinkSpec {
		return lab.LinkSpec{
			Ends: [2]lab.Endpoint{{Node: "web" + i, Interface: "eth0"},
				{Node: "zebra", Interface: "web" + i}},
			RateBits:   1_500_000_000,
			BurstBytes: 65536,
			Latency:    20 * time.Millisecond,
			MTU:        9000,
		}
	}
	sysctls := web("1").Sysctls[:2]
	want := &lab.Spec{
		Name: "all",
		File: "all.yaml",
		Nodes: []lab.NodeSpec{{Name: "zebra", Sysctls: sysctls}, web("1"), web("2"),
			{Name: "alpha", Sysctls: sysctls}},
		Links: []lab.LinkSpec{link("1"), link("2"),
			{Ends: [2]lab.Endpoint{{Node: "alpha", Interface: "eth0"},
				{Node: "zebra", Interface: "alpha"}}}},
		Run: []lab.Step{{Node: "web2", Command: lab.Command{Shell: "echo {dir}"}}},
	}
	options := cmp.Options{
		cmpopts.IgnoreUnexported(lab.NodeSpec{}, lab.LinkSpec{}),
		cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
		cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestLoadOfAMissingFile(t *testing.T) {
	_, err := lab.Load("no/such.yaml")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load: %v, want os.ErrNotExist", err)
	}
}

func TestIndexWords(t *testing.T) {
	for text, want := range map[string]string{
		"web{i}":            "web11",
		"{i:x}:{i:02x}":     "b:0b",
		"{i:X} {i:04d}":     "B 0011",
		"{i:}":              "11",
		"{dir} {{i}} {ip}":  "{dir} {11} {ip}",
		"{i:q} {i:123456d}": "{i:q} {i:123456d}",
	} {
		if got := lab.WithIndex(11)(text); got != want {
			t.Errorf("index 11 in %q = %q, want %q", text, got, want)
		}
	}
}

func TestReadyText(t *testing.T) {
	for _, text := range []string{"tcp://[fd00::1]:80", "tcp://192.0.2.1:80", "unix:/run/x.sock",
		"file:{dir}/up", "exec:test -e x && true"} {
		ready, err := lab.ParseReady(text)
		if err != nil || ready.String() != text {
			t.Errorf("ParseReady(%q) = %q, %v", text, ready, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	paths, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := lab.Parse("fuzz.yaml", data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without text")
			}
			return
		}
		if _, err := lab.RouteText(spec); err != nil {
			t.Errorf("the file passed, but its network can't be worked out: %v", err)
		}
	})
}
