package main

import (
	"strings"
	"testing"
)

// The printed commands are commands of this program: each is run, and the last state is what
// ipvsadm would have made.
func TestIPVSCommandsRun(t *testing.T) {
	w := newWorld(t, fakeEdge)
	for _, line := range []string{
		"-A -t 192.0.2.80:80 -s wlc", "-At [2001:db8::80]:443 -s mh",
		"--add-service --udp-service 192.0.2.53:0",
		"-a -t 192.0.2.80:80 -r fcbb:bb00:1:: -g -w 3",
		"-a -t 192.0.2.80:80 -r [fcbb:bb00:2::]:80 -i", "-e -t 192.0.2.80:80 -r fcbb:bb00:1:: -w 0",
		"-e -t 192.0.2.80:80 -r fcbb:bb00:2:: -w 7", "-E -t 192.0.2.80:80 -s sh",
		"-D -u 192.0.2.53:0", "-L -n --stats",
	} {
		out := w.run(append([]string{"ipvsadm"}, strings.Fields(line)...)...)
		if !strings.HasSuffix(out, "[exit 0]\n") {
			t.Fatal(out)
		}
		for command := range strings.Lines(out) {
			if words := strings.Fields(command); len(words) > 1 && words[0] == "sextant" {
				if out := w.run(words[1:]...); !strings.HasSuffix(out, "[exit 0]\n") {
					t.Errorf("%s gave %s:\n%s", line, command, out)
				}
			}
		}
	}
	golden(t, "ipvsadm-state", w.run("service", "list")+w.run("backend", "list"))
}

// Saved rules are read line by line.
func TestIPVSRestore(t *testing.T) {
	w := newWorld(t, fakeEdge)
	w.stdin = "# saved\n-A -t 192.0.2.80:80 -s rr\n\n-a -t 192.0.2.80:80 -r fcbb:bb00:1:: -m -w " +
		"1\n-a -t 192.0.2.80:80 -r 10.0.0.1:80 -m -w 1\n"
	golden(t, "ipvsadm-restore", w.run("ipvsadm", "-R"))
}

// FuzzIPVS looks for a command line that brings the translator down.
func FuzzIPVS(f *testing.F) {
	for _, line := range []string{"-A -t 192.0.2.80:80 -s wlc", "-at 192.0.2.80:80 -r ::1 -p -w 3",
		"--add-service", "-p 3 -Z"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p, err := parseIPVS(strings.Fields(line))
		if err != nil {
			return
		}
		if _, _, err := p.translate(); err == nil && p.command == 0 {
			t.Errorf("%q has no command", line)
		}
	})
}
