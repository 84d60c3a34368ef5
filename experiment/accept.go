package experiment

import "net"

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
