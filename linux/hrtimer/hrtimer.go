// Package hrtimer is a timer that expires within some tens of microseconds of its time.
//
// The Go runtime sleeps in epoll_wait, whose timeout is whole milliseconds, so
// a timer of package time goes off up to a millisecond late in an idle
// process: a bias of several percent on a service time of ten milliseconds. A
// timerfd on CLOCK_MONOTONIC is a file that becomes readable at its time, to
// the precision of the kernel's high-resolution timers, and the runtime waits
// for it as it waits for a socket.
package hrtimer

import (
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Timer goes off once for each time it was set to. Set, Wait and Close may be
// called by different goroutines.
type Timer struct {
	file *os.File
	raw  syscall.RawConn
	// One instant as package time and as CLOCK_MONOTONIC knows it: the runtime
	// reads that clock too, but does not tell its value.
	epoch          time.Time
	epochMonotonic time.Duration
}

// New returns a timer that is not set. Close it when it is no longer needed.
func New() (*Timer, error) {
	epoch, epochMonotonic, err := readEpoch()
	if err != nil {
		return nil, err
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("hrtimer: create a timerfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("hrtimer: %w", err)
	}
	return &Timer{file: file, raw: raw, epoch: epoch, epochMonotonic: epochMonotonic}, nil
}

// readEpoch reads the clock in both ways, time.Now before and after unix. Of
// several attempts it takes the quickest: in a slow one the process may have
// lost the CPU in between, and every use of the timer would be off by that.
func readEpoch() (epoch time.Time, monotonic time.Duration, err error) {
	const attempts = 16
	quickest := time.Duration(math.MaxInt64)
	for range attempts {
		var now unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return epoch, 0, fmt.Errorf("hrtimer: read CLOCK_MONOTONIC: %w", err)
		}
		if took := time.Since(before); took < quickest {
			quickest, epoch, monotonic = took, before.Add(took/2), time.Duration(now.Nano())
		}
	}
	return epoch, monotonic, nil
}

// Set makes the timer go off at the time at, in place of the one it was set to
// before, and at once if at has passed. The time must carry a monotonic clock
// reading, as those from time.Now and sums on it do.
func (t *Timer) Set(at time.Time) error {
	// A value of 0 would disarm the timer; 1 ns after boot is in the past too.
	value := max(t.epochMonotonic+at.Sub(t.epoch), 1)
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(value))}
	var failure error
	err := t.raw.Control(func(fd uintptr) {
		failure = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil)
	})
	if err == nil {
		err = failure
	}
	if err != nil {
		return fmt.Errorf("hrtimer: set a timerfd: %w", err)
	}
	return nil
}

// Wait blocks until the timer goes off. After Close it returns an error that
// wraps os.ErrClosed.
func (t *Timer) Wait() error {
	var expirations [8]byte
	if _, err := t.file.Read(expirations[:]); err != nil {
		return fmt.Errorf("hrtimer: wait: %w", err)
	}
	return nil
}

// Close ends the timer and every Wait on it.
func (t *Timer) Close() error {
	return t.file.Close()
}
