package experiment

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Serve lets nodes of a lab answer connections to an address until the end.
func (a *Arena) Serve(address string, answer func(node string, conn net.Conn),
	nodes ...string) (end func(), err error) {
	var listeners []net.Listener
	var wait sync.WaitGroup
	end = func() {
		for _, l := range listeners {
			l.Close()
		}
		wait.Wait()
	}
	config := net.ListenConfig{KeepAlive: -1}
	config.SetMultipathTCP(false)
	for _, node := range nodes {
		var listener net.Listener
		err := a.Spaces[node].Do(func() (err error) {
			listener, err = config.Listen(context.Background(), "tcp", address)
			return err
		})
		if err != nil {
			end()
			return nil, fmt.Errorf("listen at %s: %w", node, err)
		}
		listeners = append(listeners, listener)
		wait.Go(func() { Accept(listener, func(conn net.Conn) { answer(node, conn) }) })
	}
	return end, nil
}

// Accept answers each connection of a listener in a goroutine of its own, until the listener is
// closed. It closes the connection when that returns.
func Accept(listener net.Listener, answer func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			answer(conn)
		}()
	}
}

// Echo sends back what comes, until the client closes. io.Copy would keep a pipe open for each
// connection.
func Echo(conn net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if _, err := conn.Write(buffer[:n]); err != nil {
			return
		}
	}
}
