package lab_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"sextant/lab"
	"sextant/lab/linkemu"
)

// TestMain lets the test program be the programs that the labs of the tests
// run: "{self} helper KIND ARGUMENT".
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "helper" {
		if err := helpers[os.Args[2]](os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var helpers = map[string]func(argument string) error{
	"tcp":   func(address string) error { return serve("tcp", address) },
	"unix":  func(path string) error { return serve("unix", path) },
	"fail":  func(text string) error { return fmt.Errorf("failing: %s", text) },
	"sleep": func(string) error { time.Sleep(time.Hour); return nil },
	"up":    helperUp,
	"run":   helperRun,
	"wire":  func(file string) error { return linkemu.Run(context.Background(), file) },
}

// serve tells every connection which node it has reached.
func serve(network, address string) error {
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		io.WriteString(conn, os.Getenv("SEXTANT_NODE"))
		conn.Close()
	}
}

// helperUp brings a lab up and writes each event on a line.
func helperUp(file string) error {
	spec, err := lab.Load(file)
	if err != nil {
		return err
	}
	_, err = lab.Up(context.Background(), spec, lab.Options{Events: printEvent})
	return err
}

// helperRun runs a lab for ever.
func helperRun(file string) error {
	spec, err := lab.Load(file)
	if err != nil {
		return err
	}
	return lab.Run(context.Background(), spec, lab.Options{Events: printEvent},
		func(ctx context.Context, _ *lab.Lab) error {
			<-ctx.Done()
			return nil
		})
}

func printEvent(e lab.Event) { fmt.Printf("%T\n", e) }
