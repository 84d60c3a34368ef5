// Package webserver emulates a web server of C cores and W workers without using the CPU: a request
// states the CPU time that it needs, and its answer is delayed until a processor-sharing machine
// ([sextant/sim/queueing.Machine]) has served it. So a dozen loaded servers fit on a laptop, and
// their mean response time is known from theory.
//
// The rest is as in Apache's prefork module, the server of the SRLB paper
// (section IV-B): a worker keeps a connection from accept to close, and while
// all W workers have one, further connections stay in the kernel's listen
// queue, whose overflow the kernel handles (net.ipv4.tcp_abort_on_overflow).
//
//	GET /?ms=12.5&bytes=1000   answer 1000 bytes after 12.5 ms of CPU time
//	GET /status                {"busy":3,"queued":0,"served":1234}
//
// The header X-Service-Time means the same as ms. Without either, the demand
// is drawn from an exponential distribution. Every answer names its server in
// the header X-Server.
package webserver

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Config describes an emulated server. All but Name and Addresses may be zero.
type Config struct {
	Name      string        // value of the header X-Server: visible ASCII characters
	Addresses []string      // host:port pairs to listen on, IPv4 or [IPv6]
	Cores     int           // cores of the emulated machine; 2 if 0
	Speed     float64       // of each core, as a part of the usual one's; 1 if 0
	Workers   int           // connections served at a time; 32 if 0
	Backlog   int           // connections that the kernel queues beyond those; 128 if 0
	Service   time.Duration // mean CPU time of a request that does not state its own
	Seed      uint64        // of the distribution of such CPU times
	KeepAlive bool          // serve several requests per connection; else the server closes first
	// is told how many workers have a connection, when that changes; nil: nobody
	Tell func(int)
}

// withDefaults returns c with its zeros filled, or why it cannot be served.
func (c Config) withDefaults() (Config, error) {
	setDefault(&c.Cores, 2)
	setDefault(&c.Speed, 1)
	setDefault(&c.Workers, 32)
	setDefault(&c.Backlog, 128)
	switch {
	case !isVisible(c.Name):
		return c, fmt.Errorf("emulate: name %q: it must be one or more visible ASCII characters, "+
			"for the header X-Server", c.Name)
	case len(c.Addresses) == 0:
		return c, errors.New("emulate: no address to listen on; give at least one host:port")
	case c.Cores < 0 || c.Workers < 0 || c.Backlog < 0:
		return c, fmt.Errorf("emulate: %d cores, %d workers, backlog of %d: none may be negative",
			c.Cores, c.Workers, c.Backlog)
	case !(c.Speed >= leastSpeed && c.Speed <= mostSpeed):
		return c, fmt.Errorf("emulate: speed %g: it must be from %g to %g", c.Speed, leastSpeed,
			mostSpeed)
	case c.Service < 0 || c.Service > maxDemand:
		return c, fmt.Errorf("emulate: mean service time %v must be from 0 to %v", c.Service,
			maxDemand)
	}
	return c, nil
}

const leastSpeed, mostSpeed = 1e-3, 1e3

func setDefault[T int | float64](value *T, byDefault T) {
	*value = cmp.Or(*value, byDefault)
}

func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
