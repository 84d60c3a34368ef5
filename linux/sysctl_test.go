package linux_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"sextant/linux"
)

func TestSysctlPath(t *testing.T) {
	for name, want := range map[string]string{
		"net.ipv4.ip_forward":                "/proc/sys/net/ipv4/ip_forward",
		"net/ipv4/ip_forward":                "/proc/sys/net/ipv4/ip_forward",
		"net/ipv4/conf/eth0.100/rp_filter":   "/proc/sys/net/ipv4/conf/eth0.100/rp_filter",
		"net.ipv4.conf.eth0/100.rp_filter":   "/proc/sys/net/ipv4/conf/eth0.100/rp_filter",
		"net/../../../etc/passwd":            "/proc/sys/etc/passwd",
		"kernel":                             "/proc/sys/kernel",
		"net.ipv6.conf.all.seg6_enabled":     "/proc/sys/net/ipv6/conf/all/seg6_enabled",
		"net.ipv6.conf.router-a.forwarding":  "/proc/sys/net/ipv6/conf/router-a/forwarding",
		"net.ipv4.conf.all.send_redirects":   "/proc/sys/net/ipv4/conf/all/send_redirects",
		"/net/ipv4/tcp_congestion_control":   "/proc/sys/net/ipv4/tcp_congestion_control",
		"net.ipv4.tcp_available_ulp":         "/proc/sys/net/ipv4/tcp_available_ulp",
		"net.ipv6.fib_multipath_hash_policy": "/proc/sys/net/ipv6/fib_multipath_hash_policy",
	} {
		if got := linux.SysctlPath(name); got != want {
			t.Errorf("SysctlPath(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSysctlIsOfTheNamespace(t *testing.T) {
	const name = "net.ipv6.conf.default.hop_limit"
	a, b := newNetns(t), newNetns(t)
	if err := a.Do(func() error { return linux.WriteSysctl(name, "7") }); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ns   netns
		want string
	}{{a, "7"}, {b, "64"}} {
		var got string
		err := test.ns.Do(func() (err error) {
			got, err = linux.ReadSysctl(name)
			return err
		})
		if err != nil || got != test.want {
			t.Errorf("%s in %s = %q (%v), want %q", name, test.ns.Name(), got, err, test.want)
		}
	}
}

func TestSysctlErrors(t *testing.T) {
	ns := newNetns(t)
	for _, test := range []struct {
		try  func() error
		is   error
		want string
	}{
		{
			func() error { return linux.WriteSysctl("net.ipv6.no_such_thing", "1") },
			os.ErrNotExist,
			"write sysctl net.ipv6.no_such_thing: no such file or directory; check the name; " +
				"this kernel may lack what it belongs to",
		},
		{
			func() error { return linux.WriteSysctl("net.ipv4.ip_forward", "many") },
			nil,
			`write "many" to sysctl net.ipv4.ip_forward: invalid argument; the kernel takes no such value`,
		},
		{
			func() error { _, err := linux.ReadSysctl("net.ipv6.no_such_thing"); return err },
			os.ErrNotExist,
			"read sysctl net.ipv6.no_such_thing: no such file or directory; check the name; this " +
				"kernel may lack what it belongs to",
		},
	} {
		err := ns.Do(test.try)
		if err == nil || err.Error() != test.want {
			t.Errorf("error = %v\nwant    %s", err, test.want)
		}
		if test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%v does not wrap %v", err, test.is)
		}
	}
}

// TestRestrictedCongestionControl: the kernel lets a namespace choose only
// what the machine allows to all.
func TestRestrictedCongestionControl(t *testing.T) {
	ns := newNetns(t)
	const name = "net.ipv4.tcp_congestion_control"
	read := func(name string) (value string) {
		t.Helper()
		value, err := linux.ReadSysctl(name)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	allowed := strings.Fields(read("net.ipv4.tcp_allowed_congestion_control"))
	for _, control := range strings.Fields(read("net.ipv4.tcp_available_congestion_control")) {
		err := ns.Do(func() error { return linux.WriteSysctl(name, control) })
		if slices.Contains(allowed, control) {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		want := "write \"" + control + "\" to sysctl " + name +
			": operation not permitted; write reno, or first allow it to " +
			"all namespaces by adding it to net.ipv4.tcp_allowed_congestion_control of the machine"
		if err == nil || err.Error() != want {
			t.Errorf("error = %v\nwant    %s", err, want)
		}
	}
}
