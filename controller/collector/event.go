package collector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/packet/telemetry"
)

// The kernel's IOAM events, linux/ioam6_genl.h since Linux 6.10.
const (
	ioamFamily     = "IOAM6"
	ioamGroup      = "ioam6_events"
	eventTrace     = 1
	eventNamespace = 1 // u16
	eventNodeWords = 2 // u8
	eventType      = 3 // u32
	eventData      = 4
	genericHeader  = 4
	attributeType  = 0x3fff // without the flags "nested" and "network order"
)

// ErrNoEvents says that the kernel is too old for ListenEvents.
var ErrNoEvents = errors.New("this kernel has no IOAM events; Linux 6.10 has")

// ListenEvents opens the kernel's events about IOAM traces in packets that came to this network
// namespace, as router or as host. It needs CAP_NET_ADMIN, and Linux 6.10.
func ListenEvents() (*Reader, error) {
	fail := func(err error) (*Reader, error) {
		return nil, fmt.Errorf("listen to the kernel's IOAM events: %w", err)
	}
	family, err := netlink.GenlFamilyGet(ioamFamily)
	if err != nil {
		return fail(fmt.Errorf("netlink family %s: %w; it needs a kernel with CONFIG_IPV6",
			ioamFamily, err))
	}
	group := -1
	for _, g := range family.Groups {
		if g.Name == ioamGroup {
			group = int(g.ID)
		}
	}
	if group < 0 {
		return fail(ErrNoEvents)
	}
	fd, err := unix.Socket(unix.AF_NETLINK,
		unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_GENERIC)
	if err != nil {
		return fail(err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group)
	}
	if err != nil {
		unix.Close(fd)
		return fail(fmt.Errorf("%w; run with CAP_NET_ADMIN", err))
	}
	return newReader(FromEvent, "IOAM events of the kernel", os.NewFile(uintptr(fd), ioamGroup))
}

// Event takes messages of generic netlink about IOAM traces, which came at a steady time
// (nanoseconds). They do not tell the flow.
func (t *Table) Event(b []byte, nowNS int64) {
	for len(b) > 0 {
		if len(b) < unix.SizeofNlMsghdr {
			t.Dropped[BadEvent]++
			return
		}
		size := binary.NativeEndian.Uint32(b)
		if size < unix.SizeofNlMsghdr+genericHeader || uint64(size) > uint64(len(b)) {
			t.Dropped[BadEvent]++
			return
		}
		if b[unix.SizeofNlMsghdr] == eventTrace {
			t.trace(b[unix.SizeofNlMsghdr+genericHeader:size], nowNS)
		}
		b = b[min(len(b), align4(int(size))):]
	}
}

func align4(n int) int { return (n + 3) &^ 3 }

func (t *Table) trace(attributes []byte, nowNS int64) {
	t.Events++
	t.samples = t.samples[:0]
	trace, err := traceOf(attributes)
	if err == nil {
		t.samples, err = trace.AppendSamples(t.samples, 0)
	}
	if err != nil {
		t.Dropped[BadEvent]++
		return
	}
	t.seen.Has, t.seen.Segments = 0, nil
	t.add(false, nowNS)
	if t.options.Watch != nil {
		t.report = Report{Source: FromEvent}
		t.watch(nowNS)
	}
}

// traceOf reads the attributes of an event: what nodes wrote, without the free words.
func traceOf(b []byte) (telemetry.Trace, error) {
	trace := telemetry.Trace{Option: telemetry.OptionIOAM}
	words := -1
	for len(b) >= unix.SizeofRtAttr {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < unix.SizeofRtAttr || size > len(b) {
			return trace, telemetry.Truncated
		}
		value := b[unix.SizeofRtAttr:size]
		switch kind &= attributeType; {
		case kind == eventNamespace && len(value) == 2:
			trace.Namespace = binary.NativeEndian.Uint16(value)
		case kind == eventNodeWords && len(value) == 1:
			words = int(value[0])
		case kind == eventType && len(value) == 4:
			trace.Type = telemetry.TraceType(binary.NativeEndian.Uint32(value) >> 8)
		case kind == eventData:
			trace.Data = value
		}
		b = b[min(len(b), align4(size)):]
	}
	if words != trace.Type.Words() {
		return trace, telemetry.BadLength
	}
	return trace, nil
}
