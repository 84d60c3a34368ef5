package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"sextant/packet/srv6"
)

// Check says how the edge finds out whether a service's backends serve it.
type Check struct {
	Kind CheckKind `key:"kind"`
	// from one check of a backend to its next
	Interval time.Duration `key:"interval" default:"2s" range:"50ms 1h"`
	// after which a check has failed
	Timeout time.Duration `key:"timeout" default:"1s"`
	// checks in a row that must succeed for a failing backend to be healthy
	Rise int `key:"rise" default:"2" range:"1 1000"`
	// checks in a row that must fail for a healthy backend to be failing
	Fall int `key:"fall" default:"3" range:"1 1000"`
	// share of the interval by which checks come earlier or later, so that they don't march in step
	JitterPermille int          `key:"jitter" as:"share" default:"0.1"`
	Startup        CheckStartup `key:"startup" default:"up"`
	OnFail         CheckFailure `key:"onFail" default:"drain"`
	// with a smaller share of healthy backends than this, checks are not believed
	PanicPermille int `key:"panic" as:"share" default:"0.5"`
	// local identifier behind the backend's SID that is checked; 0: the SID itself
	Function srv6.CSID `key:"function" omit:"zero"`
	// from which is checked; the zero value: the edge's source for an IPv6 VIP, the kernel's choice
	// for IPv4
	Source netip.Addr `key:"source" omit:"zero"`
	// that is checked; 0: the service's
	Port uint16 `key:"port" as:"check" omit:"zero"`
	// http, https, grpc: the next check of a backend that is up takes the same connection
	Reuse bool `key:"reuse" omit:"zero"`

	// http, https
	Path string `key:"path" omit:"zero"`
	// http, https: Host header and TLS server name; "": the VIP
	Host string `key:"host" omit:"zero"`
	// http, https: what a healthy backend answers
	Status StatusRange `key:"status"`
	// http, https: what is in a healthy backend's answer; "": anything
	Body string `key:"body" omit:"zero"`
	// https: any certificate will do
	Insecure bool `key:"insecure" omit:"zero"`
	// grpc: which service is asked for; "": the server as a whole
	Service string `key:"service" omit:"zero"`
	// exec
	Command []string `key:"command" omit:"zero"`

	// nil: what clients meet with does not count
	Passive *Passive `key:"passive"`
}

// CheckKind is what a check does.
type CheckKind string

// The kinds of checks.
const (
	CheckTCP   CheckKind = "tcp"   // connects
	CheckHTTP  CheckKind = "http"  // gets a page
	CheckHTTPS CheckKind = "https" // the same behind TLS
	CheckGRPC  CheckKind = "grpc"  // calls grpc.health.v1.Health/Check
	CheckExec  CheckKind = "exec"  // runs a command, which succeeds with exit code 0
)

// CheckStartup is what is thought of a backend that nobody has checked yet.
type CheckStartup string

// The opinions of backends that are not checked yet.
const (
	StartUp   CheckStartup = "up"   // healthy until it fails
	StartDown CheckStartup = "down" // failing until it succeeds
)

// CheckFailure is what becomes of a backend whose checks fail.
type CheckFailure string

// The consequences of failing checks. None of them applies in a panic.
const (
	FailDrain CheckFailure = "drain" // no new connections; those that it has go on, if it lives
	FailDown  CheckFailure = "down"  // after a round of checks its connections are given up
)

// StatusRange are HTTP status codes, both ends included.
type StatusRange struct{ First, Last int }

// ofHTTP says whether the kind speaks HTTP with pages.
func (k CheckKind) ofHTTP() bool { return k == CheckHTTP || k == CheckHTTPS }

// SID is the one at which a backend is checked: packets to it must reach the backend's sockets
// whatever the host reports.
func (c Check) SID(backend netip.Addr) netip.Addr {
	if c.Function == 0 {
		return backend
	}
	octets := backend.As16()
	octets[6], octets[7] = byte(c.Function>>8), byte(c.Function)
	return netip.AddrFrom16(octets)
}

// Round is how long it takes at most until each backend of a service has been checked once more.
func (c Check) Round() time.Duration {
	return c.Interval + c.Interval/1000*time.Duration(c.JitterPermille) + c.Timeout
}

// Notice is how long it takes at most until a backend that works counts as healthy.
func (c Check) Notice() time.Duration {
	jitter := c.Interval / 1000 * time.Duration(c.JitterPermille)
	return time.Duration(c.Rise)*(c.Interval+jitter) + c.Timeout
}

// Target is what is connected to for a service at an endpoint.
func (c Check) Target(e Endpoint) netip.AddrPort {
	if c.Port != 0 {
		return netip.AddrPortFrom(e.VIP, c.Port)
	}
	return netip.AddrPortFrom(e.VIP, e.Port)
}

// String writes the code, or the codes as "200-399".
func (r StatusRange) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// String writes all settings that the kind has, beginning with it.
func (c *Check) String() string {
	if c == nil {
		return ""
	}
	text := []string{fmt.Sprintf("%s interval %v timeout %v rise %d fall %d jitter %s startup %s "+
		"panic %s", c.Kind, c.Interval, c.Timeout,
		c.Rise, c.Fall, FormatPermille(c.JitterPermille), c.Startup,
		FormatPermille(c.PanicPermille))}
	add := func(given bool, format string, value any) {
		if given {
			text = append(text, fmt.Sprintf(format, value))
		}
	}
	add(c.OnFail == FailDown, "onFail %s", c.OnFail)
	add(c.Function != 0, "function %s", c.Function)
	add(c.Source.IsValid(), "source %s", c.Source)
	add(c.Port != 0, "port %d", c.Port)
	add(c.Reuse, "reuse %v", c.Reuse)
	add(c.Path != "", "path %q", c.Path)
	add(c.Host != "", "host %q", c.Host)
	add(c.Kind.ofHTTP(), "status %s", c.Status)
	add(c.Body != "", "body %q", c.Body)
	add(c.Insecure, "insecure %v", c.Insecure)
	add(c.Service != "", "service %q", c.Service)
	add(len(c.Command) > 0, "command %q", c.Command)
	add(c.Passive != nil, "passive %s", c.Passive)
	return strings.Join(text, " ")
}

// Equal says whether both are the same check, or none.
func (c *Check) Equal(o *Check) bool {
	return equalParts(reflect.ValueOf(c), reflect.ValueOf(o))
}
