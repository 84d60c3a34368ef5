package e2e_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/experiment"
	"sextant/lab"
)

const reusedPorts = 12

// A client uses its port again, after a server has closed the connection and while that drains:
// the new connection is on another server. It goes on when the former ones, with the ports in
// TIME-WAIT, are back in front of the chain.
func TestPortsUsedAgain(t *testing.T) {
	needsRoot(t)
	a := upFile(t, "flood.yaml")
	p := &ports{a, a.client("edge")}
	servers := []string{"web1", "web2", "web3"}
	for _, server := range servers {
		serveNamed(t, a.lab, server)
	}
	for cookies, first := range map[string]int{"1": 40000, "2": 41000} { // 2: always, as in a flood
		for _, server := range servers {
			a.on(server, "sysctl", "-qw", "net.ipv4.tcp_syncookies="+cookies)
		}
		for former := range len(servers) {
			p.goOn(cookies, first+100*former, former)
		}
	}
	if sumOf(t, a.lab, "SyncookiesRecv") < 3*reusedPorts {
		t.Error("few connections were opened by a SYN cookie")
	}
}

// ports are those of a client that uses them again.
type ports struct {
	*agents
	edge *api.Client // one: an agent has room for few connections of its API
}

// goOn talks over connections from used ports that so many former servers have in TIME-WAIT.
func (a *ports) goOn(cookies string, first, former int) {
	a.t.Helper()
	var open []*named
	for i := range reusedPorts {
		open = append(open, a.useAgain(first+i, former))
	}
	hung := 0
	deadline := time.Now().Add(patience)
	for _, c := range open {
		if err := c.say("and on", deadline); err != nil {
			hung++
			a.t.Logf("port %d, %s: %v", c.port, c.server, err)
		}
		c.conn.Close()
	}
	if hung > 0 {
		a.t.Errorf("%d former servers in TIME-WAIT, SYN cookies %s: %d of %d connections hang",
			former, cookies, hung, len(open))
	}
}

// useAgain opens and closes connections from a port until so many servers have it in TIME-WAIT,
// and opens one more; no former server drains then.
func (a *ports) useAgain(port, former int) *named {
	a.t.Helper()
	var servers []string
	c := a.dialNamed(port)
	for range former {
		servers = append(servers, c.server)
		c.close(a.t, a.lab)
		a.turn(config.Draining, servers)
		c = a.dialNamed(port)
		for _, server := range servers {
			if c.server == server {
				a.t.Fatalf("port %d: draining %s takes a new connection", port, server)
			}
		}
	}
	a.turn(config.Up, servers)
	return c
}

func (a *ports) turn(state config.BackendState, servers []string) {
	a.t.Helper()
	for _, server := range servers {
		spec := api.BackendSpec{State: &state}
		_, err := a.edge.PutBackend(a.t.Context(), api.Update, "tcp", server, spec)
		must(a.t, err)
	}
}

// named is a connection to a server that has said its name.
type named struct {
	port   int
	conn   net.Conn
	lines  *bufio.Reader
	server string
}

// dialNamed opens a connection from a port; its former one may be in LAST-ACK yet.
func (a *agents) dialNamed(port int) *named {
	a.t.Helper()
	c := &named{port: port}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}, Timeout: patience}
	inside(a.t, a.lab, "client", func() (err error) {
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(
			time.Millisecond) {
			if c.conn, err = dialer.Dial("tcp", echoAddress); !errors.Is(err, syscall.EADDRINUSE) {
				return err
			}
		}
		return err
	})
	c.lines = bufio.NewReader(c.conn)
	must(a.t, c.conn.SetDeadline(time.Now().Add(patience)))
	name, err := c.lines.ReadString('\n')
	must(a.t, err)
	c.server = strings.TrimSpace(name)
	return c
}

// say wants a line back.
func (c *named) say(line string, deadline time.Time) error {
	if err := c.conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(c.conn, line); err != nil {
		return err
	}
	got, err := c.lines.ReadString('\n')
	if err == nil && got != line+"\n" {
		err = fmt.Errorf("the answer is %q", got)
	}
	return err
}

// close lets the server close first, and waits until it is in TIME-WAIT.
func (c *named) close(t *testing.T, l *lab.Lab) {
	t.Helper()
	_, err := fmt.Fprintln(c.conn, "close")
	must(t, err)
	if _, err := c.lines.ReadByte(); err != io.EOF {
		t.Fatalf("port %d: the server was to close: %v", c.port, err)
	}
	must(t, c.conn.Close())
	remote := fmt.Sprintf(":%04X 06 ", c.port) // proc_net_tcp(5): the remote port, and TIME-WAIT
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(
		time.Millisecond) {
		if strings.Contains(string(on(t, l, c.server, "cat", "/proc/net/tcp6")), remote) {
			return
		}
	}
	t.Fatalf("port %d: %s is not in TIME-WAIT", c.port, c.server)
}

// serveNamed says the node's name to each connection, sends back what that says, and closes when
// it is to.
func serveNamed(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	var listener net.Listener
	inside(t, l, node, func() (err error) {
		listener, err = net.Listen("tcp", echoAddress)
		return err
	})
	t.Cleanup(func() { listener.Close() })
	go experiment.Accept(listener, func(conn net.Conn) {
		fmt.Fprintln(conn, node)
		for lines := bufio.NewScanner(conn); lines.Scan() && lines.Text() != "close"; {
			fmt.Fprintln(conn, lines.Text())
		}
	})
}
