package agent

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Kinds of hostile clients.
const (
	hostileSilent  = iota // sends nothing
	hostileWriter         // sends a header, one byte after the other
	hostileReader         // asks for chains and does not read them
	hostileScraper        // the same with metrics
	hostileIdle           // asks once, reads the answer, and stays
	hostileKinds
)

const (
	hostileCount   = 3000
	hostileSources = 250 // addresses of theirs: 127.0.1.1 and following
)

const chainsRequest = "GET /v1/chains?endpoint=%5B2001:db8:80::80%5D:80/tcp&nonce=a " +
	"HTTP/1.1\r\nHost: a\r\n\r\n"

// runHostileClients keeps connections to an address until the standard input ends. It writes a
// line when each client has been there once. A client whose connection ends comes back.
func runHostileClients(address string) error {
	var seen atomic.Int32
	all := make(chan struct{})
	over := make(chan struct{})
	var clients sync.WaitGroup
	for i := range hostileCount {
		clients.Go(func() {
			first := sync.OnceFunc(func() {
				if seen.Add(1) == hostileCount {
					close(all)
				}
			})
			for {
				hostileClient(i, address, first)
				select {
				case <-over:
					return
				case <-time.After(200 * time.Millisecond): // the machine has more to do
				}
			}
		})
	}
	<-all
	fmt.Println("all are there")
	_, err := io.Copy(io.Discard, os.Stdin)
	close(over)
	return err // the clients end with the process
}

func hostileClient(i int, address string, connected func()) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%hostileSources))}
	c, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", address)
	connected()
	if err != nil {
		return
	}
	defer c.Close()
	switch i % hostileKinds {
	case hostileWriter:
		for _, b := range []byte("GET /metrics HTTP/1.1\r\nHost: a\r\nX-Long: " +
			string(make([]byte, 1<<10))) {
			if _, err := c.Write([]byte{max(b, ' ')}); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	case hostileReader, hostileScraper:
		request := chainsRequest
		if i%hostileKinds == hostileScraper {
			request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
		}
		_ = c.(*net.TCPConn).SetReadBuffer(1 << 10) // less is in flight
		for range 100 {                             // as many answers wait for it
			if _, err := c.Write([]byte(request)); err != nil {
				return
			}
		}
		waitClosed(c)
		return
	case hostileIdle:
		if _, err := c.Write([]byte("GET /none HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			return
		}
	}
	_, _ = bufio.NewReader(c).WriteTo(io.Discard) // until the agent closes it
}

// waitClosed returns when the peer has closed the connection, without reading.
func waitClosed(c net.Conn) {
	for {
		if _, err := c.Write(nil); err != nil {
			return
		}
		time.Sleep(time.Second)
		if _, err := c.Write(
			[]byte("\r\n")); err != nil { // between requests, a server leaves that out
			return
		}
	}
}
