package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// lose drops one packet in two that leaves by an interface.
func (f *fatTree) lose(router, name string) link.Link {
	f.t.Helper()
	var at link.Link
	must(f.t, f.ns[router].Do(func() error {
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
			Instructions: asm.Instructions{
				asm.FnGetPrandomU32.Call(),
				asm.And.Imm(asm.R0, 1),
				asm.LSh.Imm(asm.R0, 1), // 2 is TC_ACT_SHOT
				asm.JEq.Imm(asm.R0, 2, "exit"),
				asm.Mov.Imm(asm.R0, -1), // as if it were not there
				asm.Return().WithSymbol("exit"),
			}})
		if err != nil {
			return err
		}
		defer program.Close()
		i, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		at, err = link.AttachTCX(link.TCXOptions{Interface: i.Index, Program: program,
			Attach: ebpf.AttachTCXEgress})
		return err
	}))
	return at
}

// ends gives hosts 0 and 15 addresses, each in a namespace of its own.
func (f *fatTree) ends() {
	f.ns["far"], f.names["far"] = linuxtest.Netns(f.t)
	f.commands["far"] = &strings.Builder{}
	f.ip("hosts", "link set h15 netns %s", f.names["far"])
	for router, host := range map[string]int{"hosts": 0, "far": 15} {
		name, gateways := fmt.Sprintf("h%d", host), []string{fmt.Sprintf("10.200.%d.254", host),
			fmt.Sprintf("fd00:200:%x::fe", host)}
		f.ip(router, "link set lo up")
		f.ip(router, "link set %s up", name)
		f.ip(router, "addr add %s/24 dev %s", hostAddress(host), name)
		f.ip(router, "addr add %s/48 dev %s nodad", hostAddress6(host), name)
		for i, to := range []string{"0.0.0.0/0", "::/0"} {
			f.ip(router, "route add %s via %s", to, gateways[i])
			f.ip(router, "neigh add %s lladdr %s dev %s nud permanent", gateways[i],
				macOf(3, host), name)
		}
	}
	f.run("hosts", "far")
}

// probedPaths is what path probe says.
type probedPaths struct {
	Paths      []probedPath
	LossyLinks []struct {
		From, To string
		Paths    [][]int
	}
	LossyPaths [][]int
}

type probedPath struct {
	Choices        []int
	Routers        []string
	Sent, Answered int
}

// The link that loses every second packet is found by packets along each path, with the paths that
// cross it; without losses, none is named.
func TestCFLBPathProbe(t *testing.T) {
	t.Parallel()
	f := newFatTree(t, cflb.SourcePort, cflb.FlowLabel, false)
	f.ends()
	program := buildSextant(t)
	probe := func(to, fields string) (found probedPaths) {
		t.Helper()
		command := exec.Command(program, "path", "probe", to, "--next-hops", "2,2", "--fields",
			fields, "--radix", "2", "--key", treeKey, "-o", "json")
		output, problems := &strings.Builder{}, &strings.Builder{}
		command.Stdout, command.Stderr = output, problems
		must(t, linux.Start(command, f.ns["hosts"], nil))
		var failed *exec.ExitError
		if err := command.Wait(); err != nil && (!errors.As(err, &failed) ||
			failed.ExitCode() != 1) {
			t.Fatalf("path probe: %v\n%s", err, problems)
		}
		if err := json.Unmarshal([]byte(output.String()), &found); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		if (failed != nil) != (len(found.LossyLinks)+len(found.LossyPaths) > 0) {
			t.Errorf("exit %v, and %s", failed, output)
		}
		return found
	}
	for _, test := range []struct {
		to, fields, router, link string
		want                     string // far end of the link, and its paths
	}{
		{to: hostAddress(15).String(), fields: "source-port"},
		{to: hostAddress6(15).String(), fields: "flow-label"},
		{hostAddress(15).String(), "source-port", edgeName(0), "u1", "2 [[1 0] [1 1]]"},
		{hostAddress6(15).String(), "flow-label", aggregationName(0, 0), "u17", "3 [[0 1]]"},
	} {
		var loss link.Link
		if test.link != "" {
			loss = f.lose(test.router, test.link)
		}
		found := probe(test.to, test.fields)
		if loss != nil {
			must(t, loss.Close())
		}
		switch {
		case len(found.Paths) != 4:
			t.Errorf("%d paths, want 4", len(found.Paths))
		case test.link == "":
			for _, path := range found.Paths {
				if path.Sent != path.Answered || len(path.Routers) != 6 ||
					slices.Contains(path.Routers, "") || path.Routers[5] != test.to {
					t.Errorf("path %v to %s: %+v", path.Choices, test.to, path)
				}
			}
		case len(found.LossyLinks) != 1:
			t.Errorf("link %s of %s loses packets: found %+v", test.link, test.router, found)
		default:
			one := found.LossyLinks[0]
			first := slices.IndexFunc(found.Paths, func(p probedPath) bool {
				return slices.Equal(p.Choices, one.Paths[0])
			})
			got := fmt.Sprint(slices.Index(found.Paths[first].Routers, one.To)+1, one.Paths)
			if got != test.want {
				t.Errorf("link %s of %s loses packets: router %s, want %s: %+v", test.link,
					test.router, got, test.want, found)
			}
		}
	}
}
