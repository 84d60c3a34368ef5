package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"sextant/linux"
)

const (
	// pollTime is the wait between two looks at a ready condition.
	pollTime = 10 * time.Millisecond
	// probeTime bounds one look.
	probeTime = time.Second
)

// awaitReady waits until a process meets its ready condition. It fails if the
// process ends before.
func (s *starter) awaitReady(ctx context.Context, ready Ready, ended <-chan error) error {
	if ready.Kind == ReadyAtOnce {
		return s.settleDown(ctx, ended)
	}
	timeout := time.After(s.patience)
	for {
		last := s.probe(ctx, ready)
		if last == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("it ended before it was ready (%s): %w", ready, orExitZero(err))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timeout:
			return fmt.Errorf("it is not ready (%s) after %v: %w", ready, s.patience, last)
		case <-time.After(pollTime):
		}
	}
}

// settleDown fails if the process fails within a moment, as one does whose
// program is missing. A process that ends well may have gone to the background.
func (s *starter) settleDown(ctx context.Context, ended <-chan error) error {
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("it ended at once: %w", err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(s.settle):
		return nil
	}
}

func orExitZero(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// probe looks once whether a condition is met.
func (s *starter) probe(ctx context.Context, ready Ready) error {
	switch ready.Kind {
	case ReadyTCP:
		return s.probeTCP(ready.Target)
	case ReadyUnix:
		return closed(net.DialTimeout("unix", ready.Target, probeTime))
	case ReadyHTTP:
		return probeHTTP(ready.Target)
	case ReadyFile:
		path := ready.Target
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.node.Dir, path)
		}
		_, err := os.Stat(path)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return s.lab.run(ctx, s.node, s.lab.command(s.node, Command{Shell: ready.Target}))
}

// probeTCP connects from inside the node. A dial to a literal address makes its
// socket on the calling thread.
func (s *starter) probeTCP(target string) error {
	ns, err := linux.OpenNetns(s.node.Namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Do(func() error { return closed(net.DialTimeout("tcp", target, probeTime)) })
}

// probeHTTP asks at a Unix socket for anything. Any answer will do.
func probeHTTP(path string) error {
	conn, err := net.DialTimeout("unix", path, probeTime)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(probeTime)); err != nil {
		return err
	}
	_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n") // who does not read it may still answer
	_, err = conn.Read(make([]byte, 1))
	return err
}

func closed(conn net.Conn, err error) error {
	if err != nil {
		return err
	}
	return conn.Close()
}
