package agent_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A service manager hears that the node runs, that it lives, and that it ends.
func TestSupervisor(t *testing.T) {
	m := newMachine(t)
	address := filepath.Join(m.dir, "notify.sock")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	must(t, err)
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", address)
	t.Setenv("WATCHDOG_USEC", "300000")
	hears := func(want string) {
		t.Helper()
		must(t, manager.SetReadDeadline(time.Now().Add(20*time.Second)))
		buffer := make([]byte, 1024)
		for {
			n, err := manager.Read(buffer)
			if err != nil {
				t.Fatalf("the service manager did not hear %s: %v", want, err)
			}
			if strings.Contains(string(buffer[:n]), want) {
				return
			}
		}
	}
	a := m.start(nodeText)
	hears("READY=1\nSTATUS=node both1 runs")
	hears("WATCHDOG=1")
	hears("WATCHDOG=1")
	a.stop()
	hears("STOPPING=1")
}
