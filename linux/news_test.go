package linux_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/linux/rtnetlink"
)

// What the kernel tells while nobody reads is lost; that something was is news, and so is what it
// tells later.
func TestNewsGoesOnAfterLosses(t *testing.T) {
	ns := newNetns(t)
	ip := func(words string) {
		t.Helper()
		must(t, linuxtest.IP("-n "+ns.Name()+" "+words))
	}
	ip("link set lo up")
	last := netip.MustParseAddr("2001:db8:ffff::1").AsSlice()
	held, free := make(chan struct{}, 1), make(chan struct{})
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var told <-chan struct{}
	must(t, ns.Do(func() (err error) {
		told, err = linux.News(ctx, func(_ rtnetlink.Header, body []byte) bool {
			select {
			case held <- struct{}{}:
			default:
			}
			<-free
			return bytes.Contains(body, last)
		}, unix.RTNLGRP_IPV6_ROUTE)
		return err
	}))
	ip("route add blackhole 2001:db8::1")
	<-held
	var flood strings.Builder
	for i := 0; !ns.loses(t); i += 1000 {
		flood.Reset()
		for j := range 1000 {
			fmt.Fprintf(&flood, "-n %s route add blackhole 2001:db8:1::%x:%x\n", ns.Name(), i, j)
		}
		must(t, linuxtest.IP(flood.String()))
	}
	close(free)
	await(t, told, "what was lost")
	ip("route add blackhole 2001:db8:ffff::1")
	await(t, told, "the route that follows")
}

func await(t *testing.T, told <-chan struct{}, of string) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatalf("no news of %s", of)
	}
}

// loses says whether a socket of route netlink in the namespace has lost messages.
func (n netns) loses(t *testing.T) (lost bool) {
	t.Helper()
	must(t, n.Do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/netlink")
		for line := range strings.Lines(string(text)) {
			// sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode
			if f := strings.Fields(line); len(f) == 10 && f[1] == "0" && f[8] != "0" {
				lost = true
			}
		}
		return err
	}))
	return lost
}
