package protection

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/hrtimer"
)

// Of the stream.
const (
	telemetryPort  = 4433
	telemetryBytes = 200
	telemetryRate  = 1000 // packets per second
	// telemetryTail is how long stragglers are waited for: more than the greatest delay.
	telemetryTail = 500 * time.Millisecond
	// telemetrySpacing is left between datagrams when the sender lags: a burst would overflow the
	// 256 entries of a veth's ring.
	telemetrySpacing = 200 * time.Microsecond
	// telemetryMemory is that of the receiver's socket, for times at which it does not run.
	telemetryMemory = 16 << 20
)

// stream is what the receiver of a stream of numbered datagrams saw. It survives JSON, to be kept.
type stream struct {
	Sent       int       `json:"sent"`
	Lost       int       `json:"lost"`       // of which no copy came
	Duplicates int       `json:"duplicates"` // copies beyond the first
	Reordered  int       `json:"reordered"`  // that came first after a later one
	Ms         []float64 `json:"ms"`         // delays of first copies
	LongestGap int       `json:"longestGap"` // most lost in a row
	// packets that the machine has dropped, not the wires: full rings and buffers
	Faults uint64 `json:"faults"`
}

// telemetry sends a stream from one host to the other for so long, and calls disturb at its half.
// The second half begins when disturb has returned, so on a busy machine there is more of it.
func (a *arena) telemetry(ctx context.Context, lasts time.Duration,
	disturb func() error) (stream, error) {
	var in net.PacketConn
	var out net.Conn
	err := a.Spaces["hostb"].Do(func() (err error) {
		listen := net.ListenConfig{Control: withMemory}
		in, err = listen.ListenPacket(ctx, "udp6", fmt.Sprintf("[%s]:%d", serverAddress,
			telemetryPort))
		return err
	})
	if err != nil {
		return stream{}, err
	}
	defer in.Close()
	err = a.Spaces["hosta"].Do(func() (err error) {
		out, err = net.Dial("udp6", fmt.Sprintf("[%s]:%d", serverAddress, telemetryPort))
		return err
	})
	if err != nil {
		return stream{}, err
	}
	defer out.Close()
	before, err := a.faults(ctx)
	if err != nil {
		return stream{}, err
	}
	half := int(lasts.Seconds()*telemetryRate) / 2
	disturbed := make(chan struct{})
	var count int
	var wait sync.WaitGroup
	var arrivals []arrival
	var readFailure, sendFailure, failure error
	wait.Go(func() { arrivals, readFailure = readTelemetry(in) })
	wait.Go(func() {
		count, sendFailure = sendTelemetry(ctx, out, half, disturbed)
		// later than planned if the sender lagged
		sendFailure = errors.Join(sendFailure, in.SetReadDeadline(time.Now().Add(telemetryTail)))
	})
	select {
	case <-ctx.Done():
		failure = context.Cause(ctx)
	case <-time.After(lasts / 2):
		failure = disturb()
	}
	close(disturbed)
	wait.Wait()
	after, err := a.faults(context.WithoutCancel(ctx))
	s := judge(arrivals, count)
	s.Faults = after - before
	return s, errors.Join(failure, sendFailure, readFailure, err)
}

// withMemory gives a socket memory beyond the usual limit.
func withMemory(_, _ string, c syscall.RawConn) error {
	var failure error
	err := c.Control(func(fd uintptr) {
		failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, telemetryMemory)
	})
	return errors.Join(err, failure)
}

// faults counts what the machine has dropped anywhere in the lab.
func (a *arena) faults(ctx context.Context) (count uint64, err error) {
	links, err := a.LinkStates(ctx)
	if err != nil {
		return 0, err
	}
	for _, link := range links {
		for _, d := range link.Directions {
			count += d.Overruns + d.TooLong + d.Unsent
		}
	}
	for _, ns := range a.Spaces {
		dropped, err := droppedIn(ns)
		if err != nil {
			return 0, err
		}
		count += dropped
	}
	return count, nil
}

// droppedIn counts what the interfaces of a namespace have dropped.
func droppedIn(ns *linux.Netns) (count uint64, err error) {
	handle, err := ns.Netlink()
	if err != nil {
		return 0, err
	}
	defer handle.Close()
	ports, err := handle.LinkList()
	if err != nil {
		return 0, linux.Failed(err, "read the counters of interfaces")
	}
	for _, port := range ports {
		count += port.Attrs().Statistics.TxDropped + port.Attrs().Statistics.RxDropped
	}
	return count, nil
}

// arrival is a datagram that came.
type arrival struct {
	number int
	delay  time.Duration
}

// sendTelemetry sends evenly: half before the disturbance at least, and as many after it. Returns
// how many it has sent.
func sendTelemetry(ctx context.Context, out net.Conn, half int,
	disturbed <-chan struct{}) (sent int, err error) {
	timer, err := hrtimer.New()
	if err != nil {
		return 0, err
	}
	defer timer.Close()
	begun, last := time.Now(), time.Time{}
	packet := make([]byte, telemetryBytes)
	for end := -1; end < 0 || sent < end; sent++ {
		if ctx.Err() != nil {
			return sent, context.Cause(ctx)
		}
		at := begun.Add(time.Duration(sent) * time.Second / telemetryRate)
		if spaced := last.Add(telemetrySpacing); at.Before(spaced) {
			at = spaced
		}
		if err := errors.Join(timer.Set(at), timer.Wait()); err != nil {
			return sent, err
		}
		last = time.Now()
		binary.BigEndian.PutUint64(packet, uint64(sent))
		binary.BigEndian.PutUint64(packet[8:], uint64(time.Since(origin)))
		if _, err := out.Write(packet); err != nil {
			return sent, fmt.Errorf("send telemetry: %w", err)
		}
		select {
		case <-disturbed:
			disturbed, end = nil, max(half, sent+1)+half
		default: // and once it is nil
		}
	}
	return sent, nil
}

// origin of the times in datagrams: both ends are in this process.
var origin = time.Now()

// readTelemetry reads until the deadline that the sender sets has passed, and what is there already
// when a busy machine tells of that late.
func readTelemetry(in net.PacketConn) (arrivals []arrival, err error) {
	packet := make([]byte, telemetryBytes)
	for late := false; ; {
		n, _, err := in.ReadFrom(packet)
		now := time.Since(origin)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if late {
				return arrivals, nil
			}
			if late, err = true, in.SetReadDeadline(time.Now().Add(telemetryTail/5)); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("receive telemetry: %w", err)
		}
		if n == telemetryBytes {
			sent := time.Duration(binary.BigEndian.Uint64(packet[8:]))
			arrivals = append(arrivals, arrival{int(binary.BigEndian.Uint64(packet)), now - sent})
		}
	}
}

// judge works out what became of so many datagrams.
func judge(arrivals []arrival, sent int) stream {
	s := stream{Sent: sent}
	came := make([]bool, sent)
	highest := -1
	for _, a := range arrivals {
		if a.number < 0 || a.number >= sent {
			continue
		}
		if came[a.number] {
			s.Duplicates++
			continue
		}
		came[a.number] = true
		s.Ms = append(s.Ms, a.delay.Seconds()*1e3)
		if a.number < highest {
			s.Reordered++
		}
		highest = max(highest, a.number)
	}
	gap := 0
	for _, is := range came {
		gap++
		if is {
			gap = 0
			continue
		}
		s.Lost++
		s.LongestGap = max(s.LongestGap, gap)
	}
	return s
}
