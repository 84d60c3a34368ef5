package agent_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

// attack starts thousands of hostile clients in a process of their own and waits until all have
// been there once.
func (m *machine) attack(address string) (end func()) {
	m.t.Helper()
	command := exec.Command(os.Args[0], "helper", "hostile", address)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	must(m.t, err)
	output, err := command.StdoutPipe()
	must(m.t, err)
	must(m.t, m.ns.Do(command.Start))
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		m.t.Fatalf("the hostile clients say %q, %v", line, err)
	}
	return func() {
		input.Close()
		must(m.t, command.Wait())
	}
}

// connect opens a connection in the machine's namespace, which ends with the test.
func (m *machine) connect(from, to string) (c net.Conn, err error) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		c, err = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to)
		return nil
	}))
	if err == nil {
		m.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// tryGet asks by HTTP in the machine's namespace, by a connection of its own.
func (m *machine) tryGet(url string) (status int, err error) {
	transport := &http.Transport{DisableKeepAlives: true}
	transport.DialContext = func(_ context.Context, network,
		address string) (c net.Conn, err error) {
		doErr := m.ns.Do(func() error { c, err = net.Dial(network, address); return nil })
		return c, errors.Join(doErr, err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// lower leaves this process, and so the agent in it, few descriptors.
func lower(t *testing.T, descriptors uint64) {
	t.Helper()
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: descriptors, Max: before.Max}))
}

// withMetrics is a node file with a metrics port.
func withMetrics(text string) string {
	return strings.Replace(text, "agent.sock}", `agent.sock, metrics: "127.0.0.1:9477"}`, 1)
}

// While thousands of clients of the metrics port read nothing, send nothing or send slowly, the
// API socket answers, and the agent's memory and descriptors stay bounded. When they are gone,
// the metrics port answers again.
func TestHostileClientsOfTheMetricsPort(t *testing.T) {
	m := newMachine(t)
	must(t, m.ns.Do(upLoopback))
	r := m.start(withMetrics(nodeText))
	defer r.stop()
	end := m.attack("127.0.0.1:9477")
	lower(t, 1024)
	var use runtime.MemStats
	for range 20 {
		client := api.NewClient(m.dir + "/agent.sock") // with a connection of its own
		status, err := client.Status(t.Context())
		must(t, err)
		if status.Node != "both1" {
			t.Fatalf("the socket answers %+v", status)
		}
		runtime.ReadMemStats(&use)
		if most := uint64(256 << 20); use.HeapAlloc > most {
			t.Fatalf("the heap has %d bytes under attack, want %d at most", use.HeapAlloc, most)
		}
		time.Sleep(100 * time.Millisecond) // the attack goes on
	}
	const refused = "sextant_listener_refused_connections_total"
	for metric, want := range map[string]struct{ least, most float64 }{
		`sextant_listener_connections{listener="metrics"}`: {1, 128},
		`sextant_listener_connections{listener="socket"}`:  {1, 128},
		refused + `{limit="total",listener="metrics"}`:     {1000, math.Inf(1)},
		refused + `{limit="total",listener="socket"}`:      {0, 0},
	} {
		v, err := strconv.ParseFloat(r.metric(metric), 64)
		if err != nil || v < want.least || v > want.most {
			t.Errorf("%s is %v, %v", metric, v, err)
		}
	}
	end()
	eventually(t, "the metrics port answers again", func() bool {
		response, err := m.tryGet("http://127.0.0.1:9477/metrics")
		return err == nil && response == http.StatusOK
	})
}

// One source can't have the places of all.
func TestOneSourceLeavesPlacesToOthers(t *testing.T) {
	m := newMachine(t)
	must(t, m.ns.Do(upLoopback))
	r := m.start(withMetrics(nodeText))
	defer r.stop()
	ended := make(chan struct{}, 100)
	for range 100 {
		c, err := m.connect("127.0.0.2", "127.0.0.1:9477")
		if err != nil { // refused before the client has seen that it was there
			ended <- struct{}{}
			continue
		}
		go func() {
			_, _ = c.Read(make([]byte, 1))
			ended <- struct{}{}
		}()
	}
	for range 100 - 16 {
		<-ended
	}
	if response, err := m.tryGet("http://127.0.0.1:9477/metrics"); err != nil ||
		response != http.StatusOK {
		t.Errorf("another source gets %d, %v", response, err)
	}
	const refused = `sextant_listener_refused_connections_total{limit="source",listener="metrics"}`
	if got := r.metric(refused); got != "84" {
		t.Errorf("%s refusals of one source are counted, want 84", got)
	}
}
