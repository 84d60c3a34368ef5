package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
	"sextant/datapath"
)

// Bounds of a capture's steps.
const (
	captureBatch = 256                    // packets that are explained at once
	capturePause = 100 * time.Millisecond // that a packet waits for others
)

// captures copies packets of a role, for one caller at a time.
type captures struct {
	*role.Core
	*role.Roles
	now *capturing // nil: nobody captures
}

// Capture is what api.Agent says.
func (s *captures) Capture(
	ctx context.Context, want api.Capture, begin func() error,
	each func([]api.CapturedPacket) error,
) (err error) {
	c, err := role.Ask(ctx, &s.Loop, func() (*capturing, error) { return s.begin(want) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	if err := begin(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		packets, err := c.next(ctx)
		if err == nil && len(packets) > 0 {
			err = each(packets)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// capturing is a capture that goes on.
type capturing struct {
	all   *captures
	want  api.Capture
	role  api.Role
	taps  *datapath.Capture
	epoch time.Time      // of the monotonic clock by which packets are stamped
	names map[int]string // of interfaces, by index
}

func (s *captures) begin(want api.Capture) (*capturing, error) {
	if s.now != nil {
		return nil, &api.Error{Code: api.Conflict,
			Message: "a capture is running on this node already; wait until that ends"}
	}
	epoch, err := monotonicEpoch()
	if err != nil {
		return nil, err
	}
	c := &capturing{all: s, want: want, role: want.Role, epoch: epoch, names: map[int]string{}}
	if c.role == "" {
		c.role = s.capturedRole()
	}
	var interfaces []string
	if want.Interface != "" {
		interfaces = []string{want.Interface}
	}
	bytes := cmp.Or(want.Bytes, datapath.CaptureMax)
	if r, ok := s.capturer(c.role); ok {
		c.taps, err = r.Capture(bytes, interfaces...)
	} else {
		err = &api.Error{Code: api.NotFound, Message: fmt.Sprintf(
			"this node has no %s that copies packets; an edge and a host do, and sextant status "+
				"says what this node is", c.role)}
	}
	if err != nil {
		return nil, err
	}
	s.now = c
	s.Log.Info("packets are captured", "role", c.role, "interface", want.Interface)
	return c, nil
}

// capturer finds a running role that is about capturing.
func (s *captures) capturer(name api.Role) (role.Capturer, bool) {
	r, found := s.Chosen(name)
	if !found {
		return nil, false
	}
	c, ok := r.Room.(role.Capturer)
	return c, ok
}

// capturedRole is whose packets are captured if the question does not say.
func (s *captures) capturedRole() api.Role {
	for _, r := range s.Running() {
		if _, ok := r.Room.(role.Capturer); ok {
			return r.Name
		}
	}
	return api.Host
}

// end puts the plain programs back. An agent that has ended has no owner any more who could meddle.
func (c *capturing) end() (err error) {
	close := func() {
		c.all.now = nil
		err = c.taps.Close()
	}
	if doErr := c.all.Do(context.Background(), close); doErr != nil {
		close()
	}
	return err
}

// next collects packets for a moment, and explains them by the configuration of now.
func (c *capturing) next(ctx context.Context) ([]api.CapturedPacket, error) {
	var batch []datapath.Captured
	for until := time.Now().Add(capturePause); len(batch) < captureBatch; {
		captured, err := c.taps.Next(until)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read captured packets: %w", err)
		}
		batch = append(batch, captured)
	}
	lost, err := c.taps.Lost()
	if err != nil {
		return nil, err
	}
	var packets []api.CapturedPacket
	err = c.all.Do(ctx, func() { packets = c.explain(batch, lost) })
	return packets, err
}

// explain names what the packets met, and leaves out those that are not wanted.
func (c *capturing) explain(batch []datapath.Captured, lost uint64) []api.CapturedPacket {
	r, ok := c.all.capturer(c.role)
	if !ok {
		return nil // the role is gone
	}
	account := r.Account()
	var packets []api.CapturedPacket
	for _, got := range batch {
		e := api.Explanation{
			Packet: "frame", Role: c.role, Interface: c.nameOf(got.Interface), Bytes: got.Length,
			Verdict: got.Verdict.String(), Outcome: got.Outcome, Reason: got.Reason,
			Telemetry: api.TelemetryOf(got.Frame),
		}
		account(&e, got, append(got.Frame, make([]byte, got.Length-len(got.Frame))...))
		e.Why = explain.Why(&e)
		e.Trace = nil // the chain is told by OfferedTo; all of it would be most of the line
		if c.want.Matches(&e) {
			packets = append(packets, api.CapturedPacket{Time: c.epoch.Add(got.Time),
				Frame: got.Frame, Lost: lost, Explanation: e})
		}
	}
	return packets
}

func (c *capturing) nameOf(index int) string {
	name, known := c.names[index]
	if !known {
		if device, err := net.InterfaceByIndex(index); err == nil {
			name = device.Name
		}
		c.names[index] = name
	}
	return name
}

// monotonicEpoch is the time at which the monotonic clock began, by the wall clock of now.
func monotonicEpoch() (time.Time, error) {
	var monotonic unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return time.Now().Add(-time.Duration(monotonic.Nano())), nil
}
