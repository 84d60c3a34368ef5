package e2e_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
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
// paths, and sends a number by each, from the one that is its argument on.
func runConnect(_ context.Context, args []string) error {
	var first uint32
	if _, err := fmt.Sscan(args[0], &first); err != nil {
		return err
	}
	for i := range uint32(steeredPackets) {
		socket, err := net.Dial("udp4", hostAddress(15).String()+":4789")
		if err != nil {
			return err
		}
		defer socket.Close()
		if _, err := socket.Write(binary.BigEndian.AppendUint32(nil, first+i)); err != nil {
			return err
		}
	}
	return nil
}

// An application that knows nothing of paths takes each of the four between two pods, by its source
// ports: every packet arrives at the interfaces of its path, and nowhere else.
func TestCFLBPathRun(t *testing.T) {
	key := [cflb.KeyLength]byte{7}
	f := newFatTree(t, cflb.Defaults(cflb.SourcePort, treePorts/2, key))
	f.ip(`-n %[1]s addr add %[2]s/24 dev h0
-n %[1]s link set lo up
-n %[1]s route add default via 10.200.0.254`, f.names["hosts"], hostAddress(0))
	program := filepath.Join(t.TempDir(), "sextant")
	if out, err := exec.Command("go", "build", "-o", program,
		"sextant/cmd/sextant").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	var paths []treePath
	for core := range 2 {
		for aggregation := range 2 {
			p := treePath{0, 15, aggregation, core}
			command := exec.Command(program, "path", "run", "--fields", "source-port",
				"--radix", "2", "--key", hex.EncodeToString(key[:]),
				"--via", fmt.Sprintf("%d,%d", aggregation, core), "--",
				os.Args[0], "connect", fmt.Sprint(len(paths)))
			for range steeredPackets {
				paths = append(paths, p)
			}
			output := &strings.Builder{}
			command.Stdout, command.Stderr = output, output
			must(t, linux.Start(command, f.ns["hosts"], nil))
			if err := command.Wait(); err != nil {
				t.Fatalf("path run: %v\n%s", err, output)
			}
		}
	}
	arrived := map[uint32][]string{}
	f.heard("hosts", len(paths), arrived)
	for _, router := range slices.Sorted(maps.Keys(f.names)) {
		f.heard(router, 0, arrived)
	}
	for i, p := range paths {
		want, _ := p.arrivals()
		got := arrived[uint32(i)]
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("packet %d of %+v:\ntook %s\nwant %s", i, p, strings.Join(got, ", "),
				strings.Join(want, ", "))
		}
	}
	f.checkChoices(2 * len(paths))
}
