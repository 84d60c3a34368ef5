package main

import (
	"strings"
	"testing"

	"sextant/linux/linuxtest"
)

// All lines of path config can be pasted into one machine, and all paths are there then.
func TestPathConfigIsTakenByLinux(t *testing.T) {
	w := newWorld(t, fakeNode)
	out := w.run("path", "config", "zoo/Abilene", "Seattle", "New_York", "--prefix",
		"2001:db8:7::/48", "--device", "wan")
	lines := strings.Split(strings.TrimSuffix(w.stdout.String(), "\n"), "\n")
	if len(lines) < 2 {
		t.Fatalf("fewer than two paths:\n%s", out)
	}
	ns, _ := linuxtest.Netns(t)
	err := ns.Do(func() error {
		pasted := "link add wan type veth peer name far\nlink set wan up\n"
		for _, line := range lines {
			pasted += strings.TrimPrefix(line, "ip ") + "\n"
		}
		return linuxtest.IP(pasted)
	})
	if err != nil {
		t.Errorf("pasted:\n%s\n%v", out, err)
	}
}
