package health_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/health"
	"sextant/config"
	"sextant/test/cputime"
)

// floorChecks is how many checks a floor is the mean of, and how many warm up before.
const floorChecks = 20000

// BenchmarkCheckFloor makes checks by the fewest system calls, one after the other on one thread
// that waits in the kernel: no time, no schedule, no verdict. What BenchmarkChecks takes beyond is
// the price of these, and of having many under way.
func BenchmarkCheckFloor(b *testing.B) {
	for _, kind := range []config.CheckKind{config.CheckTCP, config.CheckHTTP} {
		b.Run(string(kind), func(b *testing.B) {
			w := newWorld(b)
			must(b, w.hosts[0].Do(setUpManyHosts))
			must(b, w.edge.Do(func() error {
				return present(route(blocks[answers]+"::/32", "fd00:1::1"))
			}))
			w.serve(b)
			for unit, value := range w.measure(b, "floor", load{Services: 10, Backends: 1000,
				SIDs: 10000, Kind: kind, Interval: 10 * time.Second, Meets: answers}) {
				b.ReportMetric(value, unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// checkFloor checks the backends of a load in turn, and prints what a check takes.
func checkFloor(argument string) error {
	var l load
	if err := json.Unmarshal([]byte(argument), &l); err != nil {
		return err
	}
	jobs, ways := l.jobs()
	paths, err := health.OpenPaths()
	if err != nil {
		return err
	}
	if err := paths.Set("eth0", outer, ways); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	question, answer := []byte("GET /health HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n"),
		make([]byte, 1024)
	if l.Kind == config.CheckTCP {
		question = nil
	}
	used, at := cputime.Used(), time.Now()
	for i := range 2 * floorChecks {
		if i == floorChecks {
			used, at = cputime.Used(), time.Now()
		}
		n := i % len(jobs)
		jobs[n].Target.Mark = paths.Mark(ways[n])
		if err := fewestCalls(jobs[n].Target, question, answer); err != nil {
			return fmt.Errorf("check %d of %s at %s: %w", i, jobs[n].Target.Address,
				jobs[n].Target.SID, err)
		}
	}
	found := measured{
		"cpu-us/check": float64(cputime.Since(used).Microseconds()) / floorChecks,
		"us/check":     float64(time.Since(at).Microseconds()) / floorChecks,
	}
	return errors.Join(paths.Set("eth0", outer, nil), json.NewEncoder(os.Stdout).Encode(found))
}

// fewestCalls connects as a check does, asks if there is a question, and resets the connection.
func fewestCalls(t health.Target, question, answer []byte) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(t.Mark)),
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}),
		unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1),
		unix.Bind(fd, &unix.SockaddrInet6{Addr: t.Source.As16()}),
		unix.Connect(fd, &unix.SockaddrInet6{Addr: t.Address.Addr().As16(),
			Port: int(t.Address.Port())})); err != nil || question == nil {
		return err
	}
	if _, err := unix.Write(fd, question); err != nil {
		return err
	}
	if n, err := unix.Read(fd, answer); err != nil || n <= 0 {
		return fmt.Errorf("%d bytes of an answer: %w", n, err)
	}
	return nil
}
