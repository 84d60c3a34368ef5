package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/commands.txt")

// What the commands of operators print as JSON against agents that run has the fields that programs
// rely on: those of the golden file.
func TestCommands(t *testing.T) {
	a := upWithAgents(t)
	o := newOperator(t, a)
	for _, node := range []string{"web1", "web2", "web3"} {
		serveEcho(t, a.lab, node)
	}
	tr := startTraffic(t, a.lab)
	tr.flows("for operators")
	for _, node := range []string{"edge", "web1"} {
		o.prints(node, "capture --service tcp --count 3 --duration 10s -w CAPTURE")
		o.prints(node, "explain -r CAPTURE") // while the connections are open
		o.prints(node, "capture --service tcp --count 1 --duration 10s")
	}
	tr.flows("after captures")
	tr.stop()
	for _, node := range []string{"edge", "web1"} {
		for _, line := range []string{
			"status", "service list", "service show tcp", "map list", "map dump services",
			"config show", "doctor --node NODE --quick",
			"explain [2001:db8:c::1]:40000 [2001:db8:80::80]:7",
			"flow trace [2001:db8:c::1]:40000 [2001:db8:80::80]:7",
		} {
			o.prints(node, line)
		}
	}
	for _, line := range []string{
		"backend list", "backend drain tcp web1", "backend undrain tcp web1",
		"service set tcp --new-connections 100000,1000", "service show tcp",
		"diff -f NODE", "apply -f NODE",
	} {
		o.prints("edge", line)
	}
	o.prints("web1", "sid list")
	o.bundles("edge")
	o.bundles("web1")
	o.golden("testdata/commands.txt")
}

// The commands into which ipvsadm's are translated do what they say, and a service that they make
// forwards.
func TestIPVSCommandsAreAccepted(t *testing.T) {
	a := upWithAgents(t)
	o := newOperator(t, a)
	for _, ipvs := range []string{
		"ipvsadm -A -t [2001:db8:80::81]:7 -s sh", "ipvsadm -a -t [2001:db8:80::81]:7 -r " +
			"fcbb:bb00:1:: -w 2", "ipvsadm -a -t [2001:db8:80::81]:7 -r fcbb:bb00:2::",
		"ipvsadm -e -t [2001:db8:80::81]:7 -r fcbb:bb00:2:: -w 3",
	} {
		lines := strings.TrimSpace(string(o.run("edge", ipvs)))
		if lines == "" {
			t.Errorf("%s: nothing to be done", ipvs)
		}
		for line := range strings.Lines(lines) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "sextant ")
			if strings.HasPrefix(line, "#") {
				continue
			}
			o.run("edge", line)
		}
	}
	var explained struct {
		Items []struct {
			Service string `json:"service"`
			Verdict string `json:"verdict"`
		} `json:"items"`
	}
	if err := json.Unmarshal(o.run("edge",
		"explain [2001:db8:c::1]:40000 [2001:db8:80::81]:7 -o json"), &explained); err != nil {
		t.Fatal(err)
	}
	for _, e := range explained.Items {
		if e.Service == "" || e.Verdict == "drop" {
			t.Errorf("explained as %+v", e)
		}
	}
	if len(explained.Items) == 0 {
		t.Error("nothing is explained")
	}
}

// operator runs the program on the nodes of a lab.
type operator struct {
	t       *testing.T
	a       *agents
	program string
	dir     string
	fields  map[string][]string // of what a command printed
}

func newOperator(t *testing.T, a *agents) *operator {
	t.Helper()
	return &operator{t: t, a: a, program: buildSextant(t), dir: t.TempDir(),
		fields: map[string][]string{}}
}

// run returns what a command prints on a node.
func (o *operator) run(node, line string) []byte {
	o.t.Helper()
	n := nodeOf(o.t, o.a.lab, node)
	line = strings.NewReplacer("CAPTURE", filepath.Join(o.dir, node+".pcapng"), "BUNDLE",
		filepath.Join(o.dir, node+".tar.gz"),
		"NODE", filepath.Join(n.Dir, "node.yaml")).Replace(line)
	var out, errs bytes.Buffer
	inside(o.t, o.a.lab, node, func() error {
		cmd := exec.Command(o.program, strings.Fields(line)...)
		cmd.Env = append(os.Environ(), "SEXTANT_SOCKET="+n.Socket, "SEXTANT_BPF="+n.BPF,
			"SEXTANT_TIMEOUT=1m")
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		finds := strings.HasPrefix(line, "doctor") || strings.HasPrefix(line, "diff")
		if exit := (*exec.ExitError)(nil); finds && errors.As(err, &exit) && exit.ExitCode() == 1 {
			return nil // it has found something
		}
		if err != nil {
			return fmt.Errorf("sextant %s: %w\n%s%s", line, err, &out, &errs)
		}
		return nil
	})
	return out.Bytes()
}

// prints notes the fields of what a command prints as JSON, or as lines of it.
func (o *operator) prints(node, line string) {
	o.t.Helper()
	found := map[string]bool{}
	values := json.NewDecoder(bytes.NewReader(o.run(node, line+" -o json")))
	for {
		var v any
		err := values.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			o.t.Fatalf("%s: %s: %v", node, line, err)
		}
		fieldsOf(v, "", found)
	}
	o.fields[node+": "+line] = slices.Sorted(maps.Keys(found))
}

// fieldsOf collects the names of fields, and of those in them.
func fieldsOf(v any, prefix string, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			found[prefix+name] = true
			fieldsOf(inner, prefix+name+".", found)
		}
	case []any:
		for _, item := range v {
			fieldsOf(item, prefix, found)
		}
	}
}

// bundles writes a support bundle and looks into it: it holds what was asked for, and not the
// cluster's secret.
func (o *operator) bundles(node string) {
	o.t.Helper()
	o.run(node, "support-bundle -f BUNDLE")
	f, err := os.Open(filepath.Join(o.dir, node+".tar.gz"))
	if err != nil {
		o.t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		o.t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			o.t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			o.t.Fatal(err)
		}
		if bytes.Contains(content, []byte("6d1b0c8f4e2a97d35c80f1ba2e497d06")) {
			o.t.Errorf("%s: %s tells the secret", node, header.Name)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		names = append(names, name)
	}
	o.fields[node+": support-bundle"] = names
}

// golden compares what was noted with a file.
func (o *operator) golden(file string) {
	o.t.Helper()
	var text strings.Builder
	for _, line := range slices.Sorted(maps.Keys(o.fields)) {
		fmt.Fprintf(&text, "%s\n", line)
		for _, field := range o.fields[line] {
			fmt.Fprintf(&text, "  %s\n", field)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			o.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		o.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		o.t.Errorf("%s (-want +got, go test -update rewrites it):\n%s", file, diff)
	}
}
