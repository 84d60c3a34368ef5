package httpserver

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// keptSocket is a Unix socket that is opened anew when others remove its file, as a clean-up of
// /run does: otherwise no command would reach the daemon until it is restarted, and another one
// could be started beside it.
type keptSocket struct {
	path   string
	listen func() (*net.UnixListener, error)

	mu     sync.Mutex
	now    *net.UnixListener
	closed bool
}

// socketInterval is how often is looked whether the file is there.
const socketInterval = time.Second

func (k *keptSocket) current() *net.UnixListener {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// Accept is net.Listener.
func (k *keptSocket) Accept() (net.Conn, error) {
	for {
		l := k.current()
		if c, err := l.Accept(); err == nil || l == k.current() {
			return c, err
		}
	}
}

// Addr is net.Listener.
func (k *keptSocket) Addr() net.Addr { return k.current().Addr() }

// Close is net.Listener.
func (k *keptSocket) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	return k.now.Close()
}

// renew opens the socket anew if its file is gone. Connections go on. A file that is there is left
// alone, be it another daemon's.
func (k *keptSocket) renew() (renewed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, missing := os.Lstat(k.path); k.closed || !errors.Is(missing, os.ErrNotExist) {
		return false, nil
	}
	next, err := k.listen()
	if err != nil {
		return false, err
	}
	before := k.now
	k.now = next
	before.SetUnlinkOnClose(false) // the file is that of the next one
	before.Close()
	return true, nil
}

// keepSocket has the socket renewed, until the servers stop.
func (s *Servers) keepSocket() {
	tick := time.NewTicker(socketInterval)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-tick.C:
		case <-s.stopped.Done():
			return
		}
		renewed, err := s.kept.renew()
		switch {
		case renewed:
			said = ""
			s.log.Warn("the API socket was removed by others; it is opened anew", "socket",
				s.kept.path)
		case err != nil && err.Error() != said:
			said = err.Error()
			s.log.Warn("the API socket was removed, and can't be opened anew; tried again", "error",
				err)
		}
	}
}
