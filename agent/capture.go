package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/datapath"
	"sextant/datapath/model"
)

// Bounds of a capture's steps.
const (
	captureBatch = 256                    // packets that are explained at once
	capturePause = 100 * time.Millisecond // that a packet waits for others
)

// Capture is what api.Agent says.
func (a *Agent) Capture(
	ctx context.Context, want api.Capture, begin func() error,
	each func([]api.CapturedPacket) error,
) (err error) {
	var c *capturing
	if doErr := a.do(ctx, func() { c, err = a.beginCapture(want) }); doErr != nil {
		return doErr
	}
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
	agent *Agent
	want  api.Capture
	role  api.Role
	taps  *datapath.Capture
	epoch time.Time      // of the monotonic clock by which packets are stamped
	names map[int]string // of interfaces, by index
}

func (a *Agent) beginCapture(want api.Capture) (*capturing, error) {
	if a.captures != nil {
		return nil, &api.Error{Code: api.Conflict,
			Message: "somebody captures on this node already; wait until that ends"}
	}
	epoch, err := monotonicEpoch()
	if err != nil {
		return nil, err
	}
	c := &capturing{agent: a, want: want, role: want.Role, epoch: epoch, names: map[int]string{}}
	if c.role == "" {
		c.role = a.capturedRole()
	}
	var interfaces []string
	if want.Interface != "" {
		interfaces = []string{want.Interface}
	}
	bytes := want.Bytes
	if bytes == 0 {
		bytes = datapath.CaptureMax
	}
	if r, ok := a.capturer(c.role); ok {
		c.taps, err = r.capture(bytes, interfaces...)
	} else {
		err = &api.Error{Code: api.NotFound, Message: fmt.Sprintf(
			"this node has no %s that copies packets; an edge and a host do, and sextant status "+
				"says what this node is", c.role)}
	}
	if err != nil {
		return nil, err
	}
	a.captures = c
	a.options.Log.Info("packets are captured", "role", c.role, "interface", want.Interface)
	return c, nil
}

// capturer finds a running role that is about capturing.
func (a *Agent) capturer(name api.Role) (capturer, bool) {
	r, found := a.chosen(name)
	if !found {
		return nil, false
	}
	c, ok := r.role.(capturer)
	return c, ok
}

// capturedRole is whose packets are captured if the question does not say.
func (a *Agent) capturedRole() api.Role {
	for _, r := range a.running() {
		if _, ok := r.role.(capturer); ok {
			return r.name
		}
	}
	return api.Host
}

// end puts the plain programs back. An agent that has ended has no owner any more who could meddle.
func (c *capturing) end() (err error) {
	close := func() {
		c.agent.captures = nil
		err = c.taps.Close()
	}
	if doErr := c.agent.do(context.Background(), close); doErr != nil {
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
	err = c.agent.do(ctx, func() { packets = c.explain(batch, lost) })
	return packets, err
}

// explain names what the packets met, and leaves out those that are not wanted.
func (c *capturing) explain(batch []datapath.Captured, lost uint64) []api.CapturedPacket {
	x := &explaining{agent: c.agent, role: c.role}
	r, ok := c.agent.capturer(c.role)
	if !ok {
		return nil // the role is gone
	}
	r.model(x)
	var packets []api.CapturedPacket
	for _, got := range batch {
		e := api.Explanation{
			Packet: "frame", Role: c.role, Interface: c.nameOf(got.Interface), Bytes: got.Length,
			Verdict: got.Verdict.String(), Outcome: got.Outcome, Reason: got.Reason,
		}
		x.at.Index = got.Interface
		x.captured(&e, got)
		if c.want.Matches(&e) {
			packets = append(packets, api.CapturedPacket{Time: c.epoch.Add(got.Time),
				Frame: got.Frame, Lost: lost, Explanation: e})
		}
	}
	return packets
}

// captured completes an explanation from a frame of which the end may be missing.
func (x *explaining) captured(e *api.Explanation, got datapath.Captured) {
	frame := append(got.Frame, make([]byte, got.Length-len(got.Frame))...)
	if x.edge != nil {
		x.accountEdge(e, frame)
	} else if r := x.accountHost(e, frame); got.Verdict != model.Drop {
		if offer := capturedOffer(r.Offer, got.Taken); offer != model.OfferNone {
			e.Offer = offer.String()
		}
	}
	e.Why = why(e)
	e.Trace = nil // the chain is told by OfferedTo; all of it would be most of the line
}

// capturedOffer is what became of an offer, as far as the verdict tells.
func capturedOffer(least model.Offer, taken bool) model.Offer {
	refused := least == model.OfferRefused || least == model.OfferRefusedBefore
	switch {
	case refused && taken:
		return model.OfferAccepted
	case taken && least != model.OfferNone && least != model.OfferLast:
		return model.OfferHere
	case refused:
		return model.OfferRefused
	}
	return least
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
