package datapath

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// ChangeSegments is how many segments of a list a change in a datagram can have.
const ChangeSegments = 6

// changeSegments is struct change_segments: a list's segments, and :: behind them.
type changeSegments [ChangeSegments][16]byte

// FlowChanges is a socket whose filter makes changes of flows' paths as their datagrams come, while
// that is allowed. Any goroutine may call its methods.
type FlowChanges struct {
	key           flow.Secret
	cookie        uint64
	streams, made *ebpf.Map
}

// flowChange is the name of the filter.
const flowChange = "flow_change"

// loadChange loads the filter, if there are flows to change.
func (h *Headend) loadChange() error {
	if h.config.Flows == 0 {
		return nil
	}
	spec, err := h.sideSpec(Internal)
	if err != nil {
		return err
	}
	h.probeChange(spec)
	return nil
}

// probeChange loads the filter of an object, or notes why the kernel does not take it: a head-end
// runs without.
func (h *Headend) probeChange(spec *ebpf.CollectionSpec) {
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool {
		return name != flowChange
	})
	programs, err := h.load(spec)
	h.change, h.noChange = programs[flowChange], err
}

// OpenFlowChanges gives a socket its filter, with the key of its datagrams. The filter makes no
// change before Allow. An error says why this kernel has no such filter.
func (h *Headend) OpenFlowChanges(socket *net.UDPConn, key flow.Secret) (*FlowChanges, error) {
	if h.config.Flows == 0 {
		return nil, ErrNoFlowPaths
	}
	if h.noChange != nil {
		return nil, fmt.Errorf("probe for a filter of changes: %w", h.noChange)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &FlowChanges{key: key}
	var failure error
	err = raw.Control(func(fd uintptr) {
		if c.cookie, failure = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET,
			unix.SO_COOKIE); failure != nil {
			return
		}
		failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_BPF, h.change.FD())
	})
	if err = errors.Join(err, failure); err != nil {
		return nil, fmt.Errorf("give a socket its filter: %w", err)
	}
	if c.streams, err = h.maps["change_streams"].Clone(); err != nil {
		return nil, err
	}
	if c.made, err = h.maps["changes_made"].Clone(); err == nil {
		err = c.made.Put(c.cookie, uint64(0))
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("number the changes of a socket: %w", err)
	}
	return c, nil
}

// Allow has the filter make the change after a number, and those that follow it, of paths that are
// held for so long at least.
func (c *FlowChanges) Allow(after uint64, least time.Duration) error {
	return c.streams.Put(c.cookie, changeStream{Key: c.key, Applied: after,
		LeastHoldMs: uint64(least.Milliseconds())})
}

// Deny has the filter make no changes.
func (c *FlowChanges) Deny() error {
	if err := c.streams.Delete(c.cookie); !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// Made is the number of the last change that the filter has made; 0: it has made none.
func (c *FlowChanges) Made() (number uint64, err error) {
	return number, c.made.Lookup(c.cookie, &number)
}

// Close has the filter make no changes any more.
func (c *FlowChanges) Close() {
	if c.made != nil {
		_, _ = c.Deny(), c.made.Delete(c.cookie) // at worst an entry stays, whose cookie none has
		c.made.Close()
	}
	c.streams.Close()
}

// showList has changes find a list by its segments.
func (h *Headend) showList(place uint32) error {
	segments, ok := segmentsOf(h.flows.headers[place])
	if !ok {
		return nil
	}
	if err := h.maps["flow_places"].Put(segments, place); err != nil {
		return fmt.Errorf("tell of a segment list: %w", err)
	}
	return nil
}

// hideList has no change find a list.
func (h *Headend) hideList(place uint32) error {
	segments, ok := segmentsOf(h.flows.headers[place])
	if !ok {
		return nil
	}
	err := h.maps["flow_places"].Delete(segments)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("tell of a segment list no more: %w", err)
	}
	return nil
}

// hideLists has no change find the lists of an earlier head-end, whose headers may be others now:
// also not by its filter, which its socket keeps.
func (h *Headend) hideLists() error {
	var segments changeSegments
	for {
		err := h.maps["flow_places"].NextKey(nil, &segments)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		}
		if err == nil {
			err = h.maps["flow_places"].Delete(segments)
		}
		if err != nil {
			return fmt.Errorf("tell of an earlier agent's segment lists no more: %w", err)
		}
	}
}

// segmentsOf are the segments of a list, if it has no more than a change.
func segmentsOf(header srpolicy.Header) (out changeSegments, ok bool) {
	segments := header.Segments()
	if len(segments) > len(out) {
		return out, false
	}
	for i, s := range segments {
		out[i] = s.As16()
	}
	return out, true
}
