package linux_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

// Who reads no news for a while is told that some was lost, and hears what comes then.
func TestMPTCPLostNews(t *testing.T) {
	ns, _ := linuxtest.Netns(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(ns.Do(func() error {
		must(linuxtest.IP("link set lo up"))
		heard, err := linux.OpenMPTCP()
		if err != nil {
			return err
		}
		defer heard.Close()
		config, dialer := net.ListenConfig{}, net.Dialer{Timeout: 10 * time.Second}
		config.SetMultipathTCP(true)
		dialer.SetMultipathTCP(true)
		listener, err := config.Listen(context.Background(), "tcp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		connect := func() string {
			connection, err := dialer.Dial("tcp4", listener.Addr().String())
			must(err)
			defer connection.Close()
			other, err := listener.Accept()
			must(err)
			defer other.Close()
			_, err = connection.Write([]byte{1})
			must(err)
			_, err = other.Read(make([]byte, 1))
			must(err)
			return connection.LocalAddr().String()
		}
		lost := false
		for range 1000 {
			connect()
		}
		for !lost {
			events, err := heard.Next(0)
			if lost = errors.Is(err, linux.ErrMPTCPLost); err != nil && !lost {
				return err
			}
			if err == nil && len(events) == 0 {
				t.Fatal("1,000 connections fit into the socket's memory")
			}
		}
		for { // what is still held
			if events, err := heard.Next(0); err != nil || len(events) == 0 {
				must(err)
				break
			}
		}
		want := connect()
		for {
			events, err := heard.Next(10 * time.Second)
			must(err)
			if len(events) == 0 {
				t.Fatal("no news of a connection that was opened afterwards")
			}
			for _, e := range events {
				if e.Local.String() == want {
					return nil
				}
			}
		}
	}))
}
