package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

var (
	siegeClients = flag.Int("clients", 1000, "clients of the API that TestManyClients has at once")
	siegeTime    = flag.Duration("clients.for", time.Second, "how long TestManyClients measures")
	siegeRounds  = flag.Int("clients.rounds", 1,
		"how often TestManyClients measures, without clients and beside them")
)

// echoServices have quickstart.yaml serve datagrams on port 7, and give its client a /48.
var echoServices = []string{
	"port: 80, backends: *backends}", `port: 80, backends: *backends}
            - {name: echo, vip: "2001:db8:80::80", protocol: udp, port: 7, backends: *backends}`,
	"vip: 198.51.100.80, port: 80}\n", `vip: 198.51.100.80, port: 80}
            - {name: echo, vip: "2001:db8:80::80", protocol: udp, port: 7}
`,
	`"2001:db8:c::/112"`, `"2001:db8:c::/48"`,
}

// preferAgent has the kernel prefer all threads of a node's agent. Those that it starts later are
// like these.
func (a *agents) preferAgent(node string) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", a.processes[node].Pid))
	must(a.t, err)
	for _, entry := range threads {
		thread, err := strconv.Atoi(entry.Name())
		must(a.t, errors.Join(err, preferred(thread)))
	}
}

// echoOn answers datagrams on a node until the test ends.
func (a *agents) echoOn(node string, at *unix.SockaddrInet6) {
	var socket int
	inside(a.t, a.lab, node, func() (err error) {
		socket, err = echoSocket()
		return err
	})
	must(a.t, unix.Bind(socket, at))
	over, ended := atomic.Bool{}, make(chan error, 1)
	go func() {
		err := preferred(0)
		for b := make([]byte, 100); err == nil && !over.Load(); {
			if n, from, failure := unix.Recvfrom(socket, b, 0); failure == nil {
				err = unix.Sendto(socket, b[:n], 0, from)
			}
		}
		ended <- err
	}()
	a.t.Cleanup(func() { over.Store(true); must(a.t, <-ended); unix.Close(socket) })
}

// measure has a process on the client's node, which is preferred to others, measure for a time.
func (a *agents) measure(length time.Duration, found *timesOf) {
	a.t.Helper()
	command := exec.Command("chrt", "--rr", "1", os.Args[0], "meter",
		nodeOf(a.t, a.lab, "edge").Socket, length.String())
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	must(a.t, err)
	inside(a.t, a.lab, "client", command.Start)
	var more timesOf
	must(a.t, errors.Join(json.NewDecoder(output).Decode(&more), command.Wait()))
	found.add(more)
}

// besieged starts clients of the edge's API on the client's node, of which each sends from a /64 of
// its own, and waits until all have been there. They have a processor of their own.
func (a *agents) besieged(clients int, token string) (end func() string) {
	a.t.Helper()
	cpu := strconv.Itoa(runtime.NumCPU() - 1)
	command := exec.Command("taskset", "-c", cpu, os.Args[0], "besiege", strconv.Itoa(clients),
		token)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	must(a.t, err)
	output, err := command.StdoutPipe()
	must(a.t, err)
	inside(a.t, a.lab, "client", command.Start)
	lines := bufio.NewReader(output)
	if line, err := lines.ReadString('\n'); err != nil {
		a.t.Fatalf("the clients say %q, %v", line, err)
	}
	return func() string {
		input.Close()
		text, err := io.ReadAll(lines)
		must(a.t, errors.Join(err, command.Wait()))
		return string(text)
	}
}

// Clients of the API over TLS come in thousands: silent ones, slow ones, some with bodies or
// streams without end, and some that come again at once. The event loop answers, and packets pass,
// beside them; when they are gone, others have the port.
func TestManyClients(t *testing.T) {
	needsRoot(t)
	a, dir, token := remoteEdge(t, echoServices...)
	for _, node := range []string{"web1", "web2", "web3"} {
		a.echoOn(node, echoVIP)
	}
	a.preferAgent("edge")
	var quiet, beside timesOf
	for range *siegeRounds {
		a.measure(*siegeTime, &quiet)
		end := a.besieged(*siegeClients, token[api.Read])
		a.measure(*siegeTime, &beside)
		var open int
		_, line, _ := strings.Cut(a.metrics("edge"), `sextant_listener_connections{listener="tls"} `)
		_, err := fmt.Sscan(line, &open)
		must(t, err)
		if open < 1 || open > 128 {
			t.Errorf("%d connections are open, not 1 to 128", open)
		}
		t.Log(end())
	}
	t.Logf("without clients: %v", quiet)
	t.Logf("beside %d clients: %v", *siegeClients, beside)
	if beside.Lost > 0 {
		t.Errorf("%d packets were lost", beside.Lost)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		got := status(a, "router", "--cacert", filepath.Join(dir, "ca.pem"), "-H",
			"Authorization: Bearer "+token[api.Read], "https://[fd00:5e::e1]:9479/v1/status")
		if got == "200" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the clients the port answers %s", got)
		}
	}
}
