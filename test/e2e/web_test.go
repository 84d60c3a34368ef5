package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/lab"
)

const (
	smallBytes = 1000
	largeBytes = 10_000_000
	servers    = 4
)

var families = []struct{ service, url string }{
	{"ipv6", "http://[2001:db8:80::80]"},
	{"ipv4", "http://198.51.100.80"},
}

// Debian's curl and wrk talk to Debian's nginx and Apache through each encapsulation: every byte is
// right in both directions, nobody resets a connection, and the connections are spread and hunted.
func TestWebServers(t *testing.T) {
	needsRoot(t)
	for _, program := range []string{"curl", "wrk", "nginx", "apache2"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: install the Debian packages curl, wrk, nginx-light and apache2, as "+
				"\"make test\" does", err)
		}
	}
	documents, sums := makeDocuments(t)
	for _, c := range []struct {
		encapsulation string
		overhead      int // IPv6 header, and a segment routing header of six or five SIDs
	}{{"carrier", 40}, {"srh", 40 + 8 + 6*16}, {"srh-reduced", 40 + 8 + 5*16}} {
		t.Run(c.encapsulation, func(t *testing.T) {
			w := &web{t: t, documents: documents, sums: sums}
			w.up(c.encapsulation, c.overhead)
			w.idle()
			resets := w.resets()
			for _, family := range families {
				w.fetch(family.url)
				w.upload(family.service, family.url)
			}
			w.noneAborted()
			for _, family := range families {
				w.load(family.url+"/small", "--header", "Connection: close")
				w.load(family.url + "/large")
			}
			for deadline := time.Now().Add(patience); !w.spread() &&
				time.Now().Before(deadline); { // a slow machine answers few
				for _, family := range families {
					w.load(family.url+"/small", "--header", "Connection: close")
				}
			}
			w.noResetsSince(resets)
			w.spreadAndHunted()
		})
	}
}

// makeDocuments writes the documents that all servers have, and returns their directory and their
// checksums by name.
func makeDocuments(t *testing.T) (dir string, sums map[string]string) {
	dir, sums = t.TempDir(), map[string]string{}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // for Apache's workers
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	for name, size := range map[string]int64{"small": smallBytes, "large": largeBytes} {
		content, err := io.ReadAll(io.LimitReader(random, size))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
		sums[name] = sum(content)
	}
	return dir, sums
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// web is a lab of web servers under test.
type web struct {
	t         *testing.T
	lab       *lab.Lab
	documents string
	sums      map[string]string
}

// up brings the lab up until the end of the test.
func (w *web) up(encapsulation string, overhead int) {
	t := w.t
	t.Helper()
	text, err := os.ReadFile("testdata/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("NAME", newName(), "ENCAPSULATION", encapsulation, "OVERHEAD",
		fmt.Sprint(overhead), "DOCUMENTS", w.documents)
	spec, err := lab.Parse("web.yaml", []byte(words.Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	w.lab = bringUp(t, spec, nil)
}

// fetch gets each document several times, each time on a connection of its own.
func (w *web) fetch(url string) {
	w.t.Helper()
	for name, want := range w.sums {
		for range 2 * servers {
			got := on(w.t, w.lab, "client", "curl", "-sSf", "--max-time", "20", url+"/"+name)
			if sum(got) != want {
				w.t.Errorf("%s/%s: %d bytes with other content than the server's", url, name,
					len(got))
			}
		}
	}
}

// upload puts the large document on some servers and reads it there.
func (w *web) upload(service, url string) {
	w.t.Helper()
	for i := range servers {
		name := fmt.Sprintf("%s-%d", service, i)
		on(w.t, w.lab, "client", "curl", "-sSf", "--max-time", "20", "-T",
			filepath.Join(w.documents, "large"), url+"/upload/"+name)
		var found []string
		for _, node := range w.lab.Nodes {
			content, err := os.ReadFile(filepath.Join(node.Dir, "upload", name))
			if err != nil {
				continue
			}
			found = append(found, node.Name)
			if sum(content) != w.sums["large"] {
				w.t.Errorf("%s has %d bytes of %s, with other content than the client sent",
					node.Name, len(content), name)
			}
		}
		if len(found) != 1 {
			w.t.Errorf("%s is on %v, want it on one server", name, found)
		}
	}
}

var answers = regexp.MustCompile(`(?m)^\s*[1-9]\d* requests in `)

// load has wrk ask for a document for a second over several connections, and again if the machine
// was too busy for an answer.
func (w *web) load(url string, flags ...string) {
	w.t.Helper()
	argv := append([]string{"wrk", "--threads", "1", "--connections", "8", "--duration", "1s",
		"--timeout", "20s"}, flags...)
	for deadline := time.Now().Add(patience); ; {
		report := string(on(w.t, w.lab, "client", append(argv, url)...))
		if strings.Contains(report, "Socket errors") || strings.Contains(report, "Non-2xx") {
			w.t.Errorf("%s:\n%s", url, report)
		}
		if answers.MatchString(report) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: wrk had no answer:\n%s", url, report)
		}
	}
}

// noneAborted looks at the client before wrk has run, which aborts what it is waiting for at its
// end.
func (w *web) noneAborted() {
	w.t.Helper()
	for _, counter := range []string{"EstabResets", "AttemptFails"} {
		if n := tcpCounter(w.t, w.lab, "client", counter); n != 0 {
			w.t.Errorf("client: %s is %d, want 0", counter, n)
		}
	}
}

// resets asks all nodes but the client, whose wrk aborts connections, how many resets they have
// sent. Some have by the time the lab is up: to those who asked whether a server is ready.
func (w *web) resets() map[string]uint64 {
	w.t.Helper()
	sent := map[string]uint64{}
	for _, node := range w.lab.Nodes {
		if node.Name != "client" {
			sent[node.Name] = tcpCounter(w.t, w.lab, node.Name, "OutRsts")
		}
	}
	return sent
}

// idle waits until the servers have ended the connections of those who asked whether they are
// ready, which busy ones reset late.
func (w *web) idle() {
	w.t.Helper()
	for _, node := range w.lab.Nodes {
		for deadline := time.Now().Add(patience); tcpCounter(w.t, w.lab, node.Name,
			"CurrEstab") > 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				w.t.Fatalf("%s still has connections before the first is opened", node.Name)
			}
		}
	}
}

func (w *web) noResetsSince(before map[string]uint64) {
	w.t.Helper()
	for node, sent := range w.resets() {
		if sent != before[node] {
			w.t.Errorf("%s has sent %d resets, want none", node, sent-before[node])
		}
	}
}

// hosted are the services of the hosts, by host.
func (w *web) hosted() map[string][]api.Service {
	w.t.Helper()
	hosts := map[string][]api.Service{}
	for _, node := range w.lab.Nodes {
		if node.Socket == "" || node.Name == "edge" {
			continue
		}
		services, err := api.NewClient(node.Socket).Services(w.t.Context(), "", api.Host)
		must(w.t, err)
		hosts[node.Name] = services
	}
	return hosts
}

// spread is whether each host has had connections of each service as the first choice and as the
// last.
func (w *web) spread() bool {
	w.t.Helper()
	for _, services := range w.hosted() {
		for _, s := range services {
			if s.Host.Accepted == 0 || s.Host.Forced == 0 {
				return false
			}
		}
	}
	return true
}

// spreadAndHunted asks the hosts what they did with the connections.
func (w *web) spreadAndHunted() {
	w.t.Helper()
	var refused, forced uint64
	all := w.hosted()
	for host, services := range all {
		for _, s := range services {
			if s.Host.Accepted == 0 || s.Host.Forced == 0 {
				w.t.Errorf("%s, %s: %d connections accepted as the first choice and %d as the "+
					"last, want both",
					host, s.Name, s.Host.Accepted, s.Host.Forced)
			}
			refused += s.Host.Refused
			forced += s.Host.Forced
		}
	}
	if hosts := len(all); hosts != servers || refused == 0 || refused != forced {
		w.t.Errorf("%d hosts passed on %d connections, of which %d were taken by another; want "+
			"%d hosts, and all taken",
			hosts, refused, forced, servers)
	}
}
