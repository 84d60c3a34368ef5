package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"sextant/datapath/model"
)

// CaptureMax is how many bytes of a frame can be captured.
const CaptureMax = captureMax

// captureMin is the shortest piece of a frame that is kept: an Ethernet header.
const captureMin = 14

// captureRoom is the size of the ring buffer in bytes, a power of two: some 30,000 small frames.
const captureRoom = 8 << 20

// Captured is a frame as it arrived, and what the program did with it.
type Captured struct {
	Time      time.Duration // of the monotonic clock
	Interface int           // index
	Length    int           // of the frame; Frame may be less of it
	Frame     []byte
	Verdict   model.Verdict
	Reason    string // as in Explained
	Outcome   string
	Taken     bool
}

// Capture is a capture that goes on: programs that hand over copies of packets run in place of
// the plain ones, on the same tables. Close it, or they go on.
type Capture struct {
	*collection
	running *collection
	reader  *ringbuf.Reader
	swaps   []swap
}

// swap is a link that has another program for a while.
type swap struct {
	path            string
	plain, captures *ebpf.Program
}

// Capture begins to copy packets of the named interfaces (none: of all) to the reader, at most so
// many bytes of each.
func (e *Edge) Capture(bytes int, interfaces ...string) (*Capture, error) {
	c := newCapture(e.collection)
	for _, i := range e.config.Interfaces {
		spec, err := e.spec(i.Side)
		if err == nil && wanted(i.Name, interfaces) {
			err = c.add(spec, "edge", e.programs[i.Side], e.dir, i.Name, bytes)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c.start()
}

// Capture begins to copy packets of the named interfaces (none: of all) to the reader, at most so
// many bytes of each.
func (h *Host) Capture(bytes int, interfaces ...string) (*Capture, error) {
	c := newCapture(h.collection)
	for _, i := range h.config.Interfaces {
		spec, err := h.spec()
		if err == nil && wanted(i.Name, interfaces) {
			delete(spec.Programs, "host_leave")
			delete(spec.Programs, "host_sockets")
			err = c.add(spec, "host", h.programs["host"], h.dir, i.Name, bytes)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c.start()
}

func wanted(name string, names []string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// newCapture shares the tables and counters of what runs.
func newCapture(running *collection) *Capture {
	c := &Capture{collection: &collection{maps: map[string]*ebpf.Map{}}, running: running}
	for name, m := range running.maps {
		if name != "captured" && name != "capture_scratch" {
			// nil: the program makes one of its own, and loading it twice shows that
			c.maps[name], _ = m.Clone()
		}
	}
	return c
}

// add loads a program that captures, for an interface; it does not run yet.
func (c *Capture) add(spec *ebpf.CollectionSpec, name string, plain *ebpf.Program, dir,
	iface string, bytes int) error {
	spec.Maps["captured"].MaxEntries = captureRoom
	if err := spec.Variables["capture_bytes"].Set(uint32(min(max(bytes, captureMin),
		CaptureMax))); err != nil {
		return err
	}
	programs, err := c.load(spec)
	if err != nil {
		return fmt.Errorf("capture packets: %w", err)
	}
	kept, err := plain.Clone()
	if err != nil {
		return fmt.Errorf("capture packets: %w", err)
	}
	c.collection.programs = append(c.collection.programs, kept)
	c.swaps = append(c.swaps, swap{filepath.Join(dir, linkName(name, xdpHook, iface)), kept,
		programs[name]})
	return nil
}

// start puts the programs in place, each in one step.
func (c *Capture) start() (*Capture, error) {
	if len(c.swaps) == 0 {
		err := errors.New("capture packets: none of the interfaces has a program of this node; " +
			"see sextant status")
		return nil, errors.Join(err, c.Close())
	}
	var err error
	if c.reader, err = ringbuf.NewReader(c.maps["captured"]); err != nil {
		return nil, errors.Join(fmt.Errorf("capture packets: %w", err), c.Close())
	}
	if err := c.standIn(); err != nil {
		return nil, errors.Join(fmt.Errorf("capture packets: %w", err), c.Close())
	}
	for _, s := range c.swaps {
		if err := s.replace(s.plain, s.captures); err != nil {
			return nil, errors.Join(fmt.Errorf("capture packets: %w", err), c.Close())
		}
	}
	return c, nil
}

// standIn lets the role that runs know its programs by those which capture, so that it does not
// take them for foreign ones.
func (c *Capture) standIn() error {
	c.running.standIns = map[ebpf.ProgramID]ebpf.ProgramID{}
	for _, s := range c.swaps {
		plain, err := idOf(s.plain)
		if err != nil {
			return err
		}
		captures, err := idOf(s.captures)
		if err != nil {
			return err
		}
		c.running.standIns[captures] = plain
	}
	return nil
}

func idOf(p *ebpf.Program) (ebpf.ProgramID, error) {
	info, err := p.Info()
	if err != nil {
		return 0, err
	}
	id, _ := info.ID()
	return id, nil
}

// replace updates the link if the program that runs there is the one that is expected; otherwise
// another process has changed it meanwhile, and owns it.
func (s swap) replace(expected, by *ebpf.Program) error {
	l, err := link.LoadPinnedLink(s.path, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	now, err := l.Info()
	if err != nil {
		return err
	}
	if id, err := idOf(expected); err != nil || id != now.Program {
		return err
	}
	return l.Update(by)
}

// Next waits for a frame until the time is over: os.ErrDeadlineExceeded then.
func (c *Capture) Next(until time.Time) (Captured, error) {
	c.reader.SetDeadline(until)
	record, err := c.reader.Read()
	if err != nil {
		return Captured{}, err
	}
	return parseCaptured(record.RawSample)
}

// Lost is how many frames came too fast to be told of.
func (c *Capture) Lost() (uint64, error) {
	lost, err := sumPerCPU(c.maps["capture_scratch"], 0,
		func(total *uint64, v capture) { *total += v.Lost })
	if err != nil {
		return 0, fmt.Errorf("read how many captured packets were lost: %w", err)
	}
	return lost, nil
}

// parseCaptured reads what the program wrote: a header, then the bytes that were kept.
func parseCaptured(raw []byte) (Captured, error) {
	var c capture
	const header = unsafe.Offsetof(c.Bytes)
	if len(raw) < int(header) || len(raw) > int(unsafe.Sizeof(c)) {
		return Captured{}, fmt.Errorf("a captured packet has %d bytes, not %d to %d", len(raw),
			header, unsafe.Sizeof(c))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c)), raw)
	got := Captured{
		Time: time.Duration(c.Time), Interface: int(c.Interface), Length: int(c.Length),
		Frame:   raw[header:min(int(header)+int(c.Kept), len(raw))],
		Reason:  nameOf(reasonNames(), int(c.Reason)),
		Outcome: nameOf(outcomeNames(), int(c.Outcome)-1),
	}
	got.Verdict, got.Taken = verdictOf(c.Verdict, got.Outcome), got.Outcome == "taken"
	return got, nil
}

func nameOf(names []string, number int) string {
	if number < 0 || number >= len(names) {
		return ""
	}
	return names[number]
}

// verdictOf names what an XDP program's code means, given the outcome that it counted.
func verdictOf(code uint32, outcome string) model.Verdict {
	switch code {
	case xdpPass:
		if outcome == "passed" {
			return model.Pass
		}
		return model.HandToKernel
	case xdpTransmit:
		return model.Transmit
	case xdpRedirect:
		return model.Redirect
	}
	return model.Drop
}

// Close puts the plain programs back, and ends a Next that waits. Frames are not lost by it.
func (c *Capture) Close() error {
	var failures []error
	c.running.standIns = nil
	for _, s := range c.swaps {
		if err := s.replace(s.captures, s.plain); err != nil && !errors.Is(err, os.ErrNotExist) {
			failures = append(failures, fmt.Errorf("end the capture: %w", err))
		}
	}
	if c.reader != nil {
		failures = append(failures, c.reader.Close())
	}
	c.close()
	return errors.Join(failures...)
}
