package datapath

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/datapath/model"
)

// linkedProgram is the program behind an interface's link, by its number.
func linkedProgram(t *testing.T, w *world, role, iface string) uint32 {
	t.Helper()
	pins, err := DescribePins(w.dir)
	must(t, err)
	for _, p := range pins {
		if filepath.Base(p.Path) == linkPrefix+role+"_xdp_"+iface {
			return p.ProgramID
		}
	}
	t.Fatalf("no link of %s on %s", role, iface)
	return 0
}

// sendFrame puts a frame on the wire that leads to an interface.
func sendFrame(t *testing.T, iface string, frame []byte) {
	t.Helper()
	device, err := net.InterfaceByName(iface)
	must(t, err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	must(t, unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: device.Index}))
}

// TestCaptureEqualsProgram: what is captured is what arrived, with the verdict that the model has,
// and when it ends the plain program is back.
func TestCaptureEqualsProgram(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	w.dir = filepath.Join(w.dir, "edge")
	config := edgeConfig(t)
	config.Interfaces[0].Side = Mixed
	edges := newTwoEdges(t, w, config)
	_, err := edges.program.Commit()
	must(t, err)
	w.dir = filepath.Dir(w.dir)
	plain := linkedProgram(t, w, "edge", "near")
	capture, err := edges.program.Capture(128)
	must(t, err)
	if linkedProgram(t, w, "edge", "near") == plain {
		t.Error("the plain program runs while packets are captured")
	}
	generator := edgeGenerator(t, 200, config)
	run := newRunner(capture.swaps[0].captures, w.near)
	reasons, before := tally{}, drops(t, edges.program.collection)
	for i := range min(*frames, 20_000) {
		frame := bytes.Clone(generator.Next())
		if len(frame) < minFrame {
			continue
		}
		want := edges.model.Process(uint32(w.near), frame)
		code, after := run.run(t, frame)
		reasons.add(want)
		got := nextLike(t, capture, frame[:min(128, len(frame))])
		reason := ""
		if want.Reason != model.ReasonNone {
			reason = want.Reason.String()
		}
		if got.Verdict != want.Verdict || got.Reason != reason || got.Length != len(frame) ||
			got.Interface != w.near || got.Taken != want.Taken || !agree(t, frame, code, after,
			want) {
			t.Fatalf("frame %d %x\ncaptured as %+v, the model says %v %v", i, frame, got,
				want.Verdict, want.Reason)
		}
	}
	if lost, err := capture.Lost(); lost != 0 || err != nil {
		t.Errorf("%d packets lost, %v", lost, err)
	}
	counted, err := edges.program.Drops()
	must(t, err)
	reasons.matches(t, counted, before) // the counters are those of the plain program
	must(t, capture.Close())
	if linkedProgram(t, w, "edge", "near") != plain {
		t.Error("after the capture, another program runs than before")
	}
}

// nextLike skips what the kernel itself sends, like neighbour solicitations.
func nextLike(t *testing.T, c *Capture, frame []byte) Captured {
	t.Helper()
	for {
		got, err := c.Next(time.Now().Add(time.Minute))
		must(t, err)
		if bytes.Equal(got.Frame, frame) {
			return got
		}
	}
}

func drops(t *testing.T, c *collection) map[string]uint64 {
	t.Helper()
	before := map[string]uint64{}
	counters, err := c.Drops()
	must(t, err)
	for _, counter := range counters {
		before[counter.Name] = counter.Packets
	}
	return before
}

// TestCaptureOnTheWire: frames that arrive by an interface are told of, in their order; when they
// come too fast, the rest is counted.
func TestCaptureOnTheWire(t *testing.T) {
	w := newWorld(t)
	host, err := OpenHost(filepath.Join(w.dir, "host"), hostConfigOn(t, "near"))
	must(t, err)
	defer host.Close()
	_, err = host.Commit()
	must(t, err)
	capture, err := host.Capture(CaptureMax, "near")
	must(t, err)
	defer capture.Close()
	for size := range 5 {
		sendFrame(t, "nearpeer", append([]byte{2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 0x86, 0xdd,
			0x60}, make([]byte, 50+size)...))
	}
	deadline := time.Now().Add(wirePatience)
	for size := 0; size < 5; {
		got, err := capture.Next(deadline)
		must(t, err)
		if got.Length != 65+size { // the kernel's own packets are on the wire too
			continue
		}
		if got.Verdict != model.Pass || len(got.Frame) != got.Length {
			t.Errorf("captured %+v", got)
		}
		size++
	}
	for _, err = capture.Next(time.Now()); err == nil; _, err = capture.Next(time.Now()) {
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing came, and Next said %v", err)
	}
}

// TestCaptureCountsLost: what does not fit the ring buffer is counted, and goes its way all the
// same.
func TestCaptureCountsLost(t *testing.T) {
	w := newWorld(t)
	host, err := OpenHost(filepath.Join(w.dir, "host"), hostConfigOn(t, "near"))
	must(t, err)
	defer host.Close()
	_, err = host.Commit()
	must(t, err)
	capture, err := host.Capture(CaptureMax)
	must(t, err)
	defer capture.Close()
	run := newRunner(capture.swaps[0].captures, w.near)
	frame := make([]byte, 3000)
	for range captureRoom/len(frame) + 10 {
		if code, _ := run.run(t, frame); code != xdpPass {
			t.Fatalf("the program returned %d", code)
		}
	}
	if lost, err := capture.Lost(); lost < 10 || err != nil {
		t.Errorf("%d packets lost, %v", lost, err)
	}
}

// TestCaptureLeavesOthersAlone: a program that was put in place during the capture stays when the
// capture ends.
func TestCaptureLeavesOthersAlone(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.dir, "edge")
	first, err := OpenEdge(dir, edgeConfig(t))
	must(t, err)
	defer first.Close()
	_, err = first.Commit()
	must(t, err)
	capture, err := first.Capture(64, "near")
	must(t, err)
	second, err := OpenEdge(dir, edgeConfig(t))
	must(t, err)
	defer second.Close()
	_, err = second.Commit()
	must(t, err)
	now := linkedProgram(t, w, "edge", "near")
	must(t, capture.Close())
	if linkedProgram(t, w, "edge", "near") != now {
		t.Error("the end of the capture has replaced a newer program")
	}
	if _, err := second.Capture(64, "elsewhere"); err == nil {
		t.Error("an interface without program was captured")
	}
}

// TestCapturedIsParsed: what is too short or too long is refused.
func TestCapturedIsParsed(t *testing.T) {
	for _, size := range []int{0, 39, 5000} {
		if _, err := parseCaptured(make([]byte, size)); err == nil {
			t.Errorf("%d bytes were taken for a captured packet", size)
		}
	}
}
