package linuxtest

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"sextant/linux"
)

var serial atomic.Int32

// Netns makes a network namespace of the test's own, which goes with the test, and says what it is
// called. It skips the test where nobody may make one.
func Netns(t testing.TB) (ns *linux.Netns, name string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
	name = fmt.Sprintf("sxt%d-%d", os.Getpid(), serial.Add(1))
	ns, err := linux.CreateNetns(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ns.Close()
		if err := linux.DeleteNetns(name); err != nil {
			t.Error(err)
		}
	})
	return ns, name
}
