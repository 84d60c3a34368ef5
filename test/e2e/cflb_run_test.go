package e2e_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sextant/linux"
	"sextant/packet/cflb"
)

// steeredPackets is how many connections a test opens for each path.
const steeredPackets = 8

// runConnect is the application of TestCFLBPathRun: it connects UDP sockets without knowing of
// paths, and sends a packet by each.
func runConnect(context.Context, []string) error {
	for range steeredPackets {
		socket, err := net.Dial("udp4", hostAddress(15).String()+":4789")
		if err != nil {
			return err
		}
		defer socket.Close()
		if _, err := socket.Write(make([]byte, treePayload4)); err != nil {
			return err
		}
	}
	return nil
}

// buildSextant builds the program.
func buildSextant(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sextant")
	if out, err := exec.Command("go", "build", "-o", program,
		"sextant/cmd/sextant").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// An application that knows nothing of paths takes each of the four between two pods, by its source
// ports: every packet arrives at the interfaces of its path, and nowhere else.
func TestCFLBPathRun(t *testing.T) {
	f := newFatTree(t, cflb.SourcePort, cflb.SourcePort, false)
	f.ip("hosts", "addr add %s/24 dev h0", hostAddress(0))
	f.ip("hosts", "link set lo up")
	f.ip("hosts", "route add default via 10.200.0.254")
	f.ip("hosts", "neigh add 10.200.0.254 lladdr %s dev h0 nud permanent", macOf(3, 0))
	f.run("hosts")
	program := buildSextant(t)
	for i := range 4 {
		p := treePath{0, 15, i % 2, i / 2}
		f.checkBatch(slices.Repeat([]treePath{p}, steeredPackets), false, func() {
			command := exec.Command(program, "path", "run", "--fields", "source-port",
				"--radix", "2", "--key", treeKey,
				"--via", fmt.Sprintf("%d,%d", p.aggregation, p.core), "--",
				os.Args[0], "connect")
			output := &strings.Builder{}
			command.Stdout, command.Stderr = output, output
			must(t, linux.Start(command, f.ns["hosts"], nil))
			if err := command.Wait(); err != nil {
				t.Fatalf("path run: %v\n%s", err, output)
			}
		})
	}
	f.checkChoices(2 * 4 * steeredPackets)
}
