package e2e_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/agent/state"
)

// echoVIP is where servers send datagrams back.
var echoVIP = &unix.SockaddrInet6{Port: 7,
	Addr: netip.MustParseAddr("2001:db8:80::80").As16()}

// timesOf are what a measurement found.
type timesOf struct {
	Packets []time.Duration // round trips
	Lost    int             // packets
	Unsent  int             // packets for which the client's device had no room
	Answers []time.Duration // of the event loop
	Changes []time.Duration // of a weight
	Between []time.Duration // answers of the event loop while it makes changes
	// what the same machine takes at the same time for a process without an agent: how much later
	// than asked for a thread wakes up, and the two things for which a change waits, a table that
	// replaces another one in the kernel, and two files that are on the disk
	Wakes, Swaps, Saves []time.Duration
}

func (x *timesOf) add(more timesOf) {
	x.Lost, x.Unsent = x.Lost+more.Lost, x.Unsent+more.Unsent
	for _, one := range []struct {
		to   *[]time.Duration
		from []time.Duration
	}{{&x.Packets, more.Packets}, {&x.Answers, more.Answers}, {&x.Changes, more.Changes},
		{&x.Between, more.Between}, {&x.Wakes, more.Wakes}, {&x.Swaps, more.Swaps},
		{&x.Saves, more.Saves}} {
		*one.to = append(*one.to, one.from...)
	}
}

func (x timesOf) String() string {
	text := fmt.Sprintf("%d packets lost, %d not sent; times:", x.Lost, x.Unsent)
	for _, one := range []struct {
		name string
		all  []time.Duration
	}{{"round trips of packets", x.Packets}, {"answers of the event loop", x.Answers},
		{"changes of a weight", x.Changes}, {"answers beside changes", x.Between},
		{"without an agent, wake-ups", x.Wakes},
		{"tables replaced", x.Swaps}, {"two files saved", x.Saves}} {
		slices.Sort(one.all)
		at := func(share float64) time.Duration {
			return one.all[int(share*float64(len(one.all)-1))].Round(10 * time.Microsecond)
		}
		text += fmt.Sprintf("\n    %s: median %v, 99 of 100 within %v, longest %v, of %d", one.name,
			at(0.5), at(0.99), at(1), len(one.all))
	}
	return text
}

// preferred has the kernel prefer a thread to all others, 0 being this one, so that times are those
// of what is measured.
func preferred(thread int) error {
	if thread == 0 {
		runtime.LockOSThread() // which ends with the goroutine
	}
	return unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr,
		Policy: unix.SCHED_RR, Priority: 1}, 0)
}

// echoSocket makes a blocking socket; reading from it ends after a moment. It is told when the
// node's own device has no room for a datagram.
func echoSocket() (socket int, err error) {
	socket, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	return socket, errors.Join(err, unix.SetsockoptTimeval(socket, unix.SOL_SOCKET,
		unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}),
		unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1))
}

// runMeter writes what it measured in a time. It sends datagrams through an edge, of whose agent it
// has the socket; in the first half it asks the agent, in the second it has it change a weight,
// too.
func runMeter(ctx context.Context, args []string) error {
	length, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	var found timesOf
	over, ended := atomic.Bool{}, make(chan error, 3)
	go func() { ended <- found.trips(&over) }()
	go func() { ended <- found.sleeps(&over) }()
	client := api.NewClient(args[0])
	err = asks(ctx, client, length/2, &found.Answers)
	go func() { ended <- asks(ctx, client, length/2, &found.Between) }()
	err = errors.Join(err, found.edits(ctx, client, filepath.Dir(args[0]), length/2))
	over.Store(true)
	return errors.Join(err, <-ended, <-ended, <-ended, json.NewEncoder(os.Stdout).Encode(found))
}

// trips sends datagrams until it is over.
func (x *timesOf) trips(over *atomic.Bool) error {
	runtime.LockOSThread()
	socket, err := echoSocket()
	if err == nil {
		err = unix.Connect(socket, echoVIP)
	}
	for n := uint64(0); err == nil && !over.Load(); n++ {
		err = x.trip(socket, n)
		aMillisecond()
	}
	return err
}

// trip sends a numbered datagram and waits for its answer, for a second. One for which the device
// of the client has no room, beside what the other clients send by it, is not on its way.
func (x *timesOf) trip(socket int, n uint64) error {
	b := make([]byte, 8)
	binary.BigEndian.PutUint64(b, n)
	began := time.Now()
	if _, err := unix.Write(socket, b); errors.Is(err, unix.ENOBUFS) {
		x.Unsent++
		return nil
	} else if err != nil {
		return err
	}
	for time.Since(began) < time.Second {
		got, err := unix.Read(socket, b)
		if err == nil && got == len(b) && binary.BigEndian.Uint64(b) == n {
			x.Packets = append(x.Packets, time.Since(began))
			return nil
		}
	}
	x.Lost++
	return nil
}

// sleeps measures how late a thread wakes up, until it is over.
func (x *timesOf) sleeps(over *atomic.Bool) error {
	runtime.LockOSThread()
	for !over.Load() {
		began := time.Now()
		aMillisecond()
		x.Wakes = append(x.Wakes, time.Since(began)-time.Millisecond)
	}
	return nil
}

// aMillisecond sleeps by the kernel's clock, without Go's.
func aMillisecond() {
	spacing := unix.NsecToTimespec(int64(time.Millisecond))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &spacing, nil)
}

// timing adds how long something takes.
func timing(times *[]time.Duration, do func() error) error {
	began := time.Now()
	err := do()
	*times = append(*times, time.Since(began))
	time.Sleep(5 * time.Millisecond)
	return err
}

// asks has the event loop answer, for a time.
func asks(ctx context.Context, client *api.Client, length time.Duration,
	times *[]time.Duration) error {
	for began := time.Now(); time.Since(began) < length; {
		if err := timing(times, func() error {
			_, err := client.Services(ctx, "web", "edge")
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// edits has the event loop change a weight, for a time, and takes turns with a table and files of
// its own.
func (x *timesOf) edits(ctx context.Context, client *api.Client, folder string,
	length time.Duration) error {
	inner := &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: 6421}
	tables, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4,
		MaxEntries: 1, InnerMap: inner})
	if err != nil {
		return err
	}
	defer tables.Close()
	for began := time.Now(); time.Since(began) < length && err == nil; {
		weight := 2 - len(x.Changes)%2
		err = errors.Join(timing(&x.Changes, func() error {
			_, err := client.PutBackend(ctx, api.Update, "web-ipv4", "web3",
				api.BackendSpec{Weight: &weight})
			return err
		}), timing(&x.Swaps, func() error {
			table, err := ebpf.NewMap(inner)
			if err != nil {
				return err
			}
			return errors.Join(tables.Put(uint32(0), table), table.Close())
		}), timing(&x.Saves, func() error {
			file := filepath.Join(folder, "meter")
			return errors.Join(state.WriteFile(file, make([]byte, 2000)),
				state.WriteFile(file, make([]byte, 2000)))
		}))
	}
	return err
}
