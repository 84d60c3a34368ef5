package main

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"sextant/agent/api"
	"sextant/lab"
)

// demoEdge is the node of the demonstration's labs that the console shows.
const demoEdge = "edge1"

// demoConsole shows the edge of the demonstration in a browser. Nobody can change anything by it.
type demoConsole struct {
	server *http.Server
	edge   atomic.Pointer[http.Handler] // of the lab that is up; nil: none
}

// open returns the address, which can be used once.
func (c *demoConsole) open() (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("the demonstration goes on without a console: %w", err)
	}
	c.server, address = consoleOf(l, http.HandlerFunc(c.forward))
	go func() { _ = c.server.Serve(l) }() // until close
	return address, nil
}

func (c *demoConsole) close() { _ = c.server.Close() }

// event follows the labs of the demonstration, one of which is up at a time.
func (c *demoConsole) event(e lab.Event) {
	switch e := e.(type) {
	case lab.LabUp:
		if _, node, err := nodeOf(e.Lab, demoEdge); err == nil {
			c.show(node.Socket)
		}
	case lab.LabDown:
		c.edge.Store(nil)
	}
}

// show has the console show the agent at a socket.
func (c *demoConsole) show(socket string) {
	edge := api.NewClient(socket).Forward(api.Read)
	c.edge.Store(&edge)
}

func (c *demoConsole) forward(w http.ResponseWriter, r *http.Request) {
	edge := c.edge.Load()
	if edge == nil {
		api.Refuse(w, &api.Error{Code: api.NotFound, Message: "no lab of the demonstration is " +
			"up now; the next one is in a moment"})
		return
	}
	(*edge).ServeHTTP(w, r)
}
