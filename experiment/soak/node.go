package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cilium/ebpf"

	"sextant/agent/api"
	"sextant/datapath"
	"sextant/experiment"
	"sextant/lab"
	"sextant/linux"
)

// node is one whose agent and programs are soaked.
type node struct {
	*lab.Node
	role    string
	ns      *linux.Netns
	agent   *api.Client
	ingress int    // index of eth0
	fed     uint64 // packets given to the program
	start   account
	seen    seen
}

// seen are kernel objects that the node ever had.
type seen struct {
	programs map[ebpf.ProgramID]bool
	maps     map[ebpf.MapID]bool
}

func openNode(a *experiment.Arena, name, role string) (*node, error) {
	found, err := a.Node(name)
	if err != nil {
		return nil, err
	}
	n := &node{Node: found, role: role, agent: a.Agents[name], ns: a.Spaces[name]}
	n.seen = seen{programs: map[ebpf.ProgramID]bool{}, maps: map[ebpf.MapID]bool{}}
	handle, err := n.ns.Netlink()
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	link, err := handle.LinkByName("eth0")
	if err != nil {
		return nil, linux.Failed(err, "find eth0 of node %s", name)
	}
	n.ingress = link.Attrs().Index
	return n, nil
}

// feed gives frames to the node's program, and those that were not dropped to a listener.
func (n *node) feed(in *frames, out func(frame []byte)) error {
	return n.ns.Do(func() error {
		running, err := n.running()
		if err != nil {
			return err
		}
		defer running.Close()
		return in.each(func(frame []byte) error {
			if len(frame) < ethernetHeader {
				return nil // the kernel runs programs on nothing shorter
			}
			after, err := running.Run(n.ingress, frame)
			if err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			n.fed++
			if after != nil {
				out(after)
			}
			return nil
		})
	})
}

// running opens what runs. While an agent takes over, a pin can be gone that was listed.
func (n *node) running() (r *datapath.Running, err error) {
	for range 10 {
		if r, err = datapath.OpenRunning(n.pins()); err == nil {
			return r, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, fmt.Errorf("node %s: %w", n.Name, err)
}

// pins is where the role's maps and links are pinned.
func (n *node) pins() string { return filepath.Join(n.BPF, n.role) }

// pid is that of the agent, among the processes of the node; 0 if there is none at the moment.
func (n *node) pid() (pid int) {
	_ = filepath.WalkDir(n.Cgroup, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "cgroup.procs" {
			return nil // cgroups come and go
		}
		text, _ := os.ReadFile(path)
		for process := range strings.FieldsSeq(string(text)) {
			words, _ := os.ReadFile(filepath.Join("/proc", process, "cmdline"))
			if arguments := strings.Split(string(words), "\x00"); len(arguments) > 1 &&
				arguments[1] == "agent" {
				pid, _ = strconv.Atoi(process)
			}
		}
		return nil
	})
	return pid
}

// patience is how long an agent may take to be there again.
const patience = 30 * time.Second

// restart ends the agent, with or without a chance to tidy up, and waits for the next one.
func (n *node) restart(ctx context.Context, signal syscall.Signal) error {
	before := n.pid()
	if before == 0 {
		return fmt.Errorf("node %s has no agent to end", n.Name)
	}
	if err := syscall.Kill(before, signal); err != nil {
		return fmt.Errorf("end the agent of node %s: %w", n.Name, err)
	}
	deadline := time.Now().Add(patience)
	for {
		if now := n.pid(); now != 0 && now != before {
			if _, err := n.agent.Status(ctx); err == nil {
				return nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("the agent of node %s did not come back within %s; its log is in "+
				"the lab's directory", n.Name, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
