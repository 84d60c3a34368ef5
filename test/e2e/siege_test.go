package e2e_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	siegeAddress = "[fd00:5e::e1]:9479"
	// what clients wait before they come back: their machine has more to do
	siegePause = 200 * time.Millisecond
)

// siegeKinds are kinds of clients: what each does with its connection until that ends.
var siegeKinds = []struct {
	name string
	run  func(c net.Conn, token string) error
}{
	{"silent", func(c net.Conn, _ string) error { return untilClosed(c) }},
	{"slow", func(c net.Conn, _ string) error {
		s, err := secured(c)
		request := "GET /v1/status HTTP/1.1\r\nX-Long: " + strings.Repeat("x", 9999)
		for _, b := range []byte(request) {
			if err == nil {
				_, err = s.Write([]byte{b})
			}
			if err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}},
	{"huge", func(c net.Conn, token string) error {
		s, err := secured(c)
		if err == nil {
			_, err = fmt.Fprintf(s, "PUT /v1/services/web/backends/web1 HTTP/1.1\r\nHost: a\r\n"+
				"Authorization: Bearer %s\r\nContent-Length: 1000000000000\r\n\r\n", token)
		}
		for b := make([]byte, 16<<10); err == nil; {
			_, err = s.Write(b)
		}
		return err
	}},
	{"endless", func(c net.Conn, token string) error {
		s, err := secured(c)
		if err == nil {
			_, err = fmt.Fprintf(s, "GET /v1/monitor?intervalMs=100 HTTP/1.1\r\nHost: a\r\n"+
				"Authorization: Bearer %s\r\n\r\n", token)
		}
		if err != nil {
			return err
		}
		return untilClosed(s)
	}},
	{"hurried", func(c net.Conn, token string) error {
		s, err := secured(c)
		for b := make([]byte, 64<<10); err == nil; { // one request after the other
			_, err = fmt.Fprintf(s, "GET /v1/services HTTP/1.1\r\nHost: a\r\n"+
				"Authorization: Bearer %s\r\n\r\n", token)
			if err == nil {
				_, err = s.Read(b)
			}
		}
		return err
	}},
}

func secured(c net.Conn) (*tls.Conn, error) {
	s := tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // whose certificate it is matters not
	return s, s.Handshake()
}

func untilClosed(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	return err
}

// runSiege keeps as many clients of an edge's API as its first argument says, who have the token of
// the second one, until the standard input ends. It writes a line when each has been there once,
// and then how many connections there were.
func runSiege(_ context.Context, args []string) error {
	clients, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var seen, refused, failed atomic.Int64
	var mu sync.Mutex
	connections := map[string]int{}
	all := make(chan struct{})
	for i := range clients {
		kind := siegeKinds[i%len(siegeKinds)]
		from := netip.MustParseAddr("2001:db8:c::1").As16()
		from[6], from[7] = byte((i+1)>>8), byte(i+1) // a /64 of its own
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from[:]}, Timeout: 5 * time.Second}
		go func() {
			for first := true; ; first = false {
				c, err := dialer.Dial("tcp", siegeAddress)
				if first && seen.Add(1) == int64(clients) {
					close(all)
				}
				switch {
				// refused as soon as it was there
				case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNABORTED):
					refused.Add(1)
				case err != nil:
					failed.Add(1)
				default:
					mu.Lock()
					connections[kind.name]++
					mu.Unlock()
					_ = kind.run(c, args[1]) // it ends when the agent has had enough
					c.Close()
				}
				time.Sleep(siegePause)
			}
		}()
	}
	<-all
	fmt.Println("all are there")
	_, err = io.Copy(io.Discard, os.Stdin)
	mu.Lock()
	defer mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(connections)) {
		fmt.Printf("%d %s, ", connections[name], name)
	}
	fmt.Printf("%d reset at once, %d not answered\n", refused.Load(), failed.Load())
	return err
}
