package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sextant/linux"
	"sextant/packet/lists"
)

// StateDir holds a directory for each lab: its state file lab.json, a
// directory for each node and the logs of the processes.
const StateDir = "/run/sextant/lab"

// Lab is a lab that is up, or what is left of one.
type Lab struct {
	Name     string    `json:"name"`
	File     string    `json:"file,omitempty"` // from which it was described
	Dir      string    `json:"dir"`            // its state directory
	Cgroup   string    `json:"cgroup"`         // directory of its cgroup
	PID      int       `json:"pid"`            // process that brought it up
	Created  time.Time `json:"created"`
	Complete bool      `json:"complete"` // it is up and needs no process to hold it
	Nodes    []Node    `json:"nodes"`
	Links    []Link    `json:"links,omitempty"`
	// where the user-space wires are; nil if there are none
	Wire *Node `json:"wire,omitempty"`
}

// Link is a link of a lab that is up.
type Link struct {
	Ends   [2]string `json:"ends"`           // like "edge1:eth0"
	Wire   WireKind  `json:"wire,omitempty"` // what impairs it; "" for nothing
	Number int       `json:"number"`         // among the user-space wires
}

// Node is a node of a lab that is up.
type Node struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"` // name of its network namespace, for "ip netns exec"
	Dir       string `json:"dir"`       // its own files
	// its directory on the bpf file system, if anything is pinned
	BPF       string   `json:"bpf"`
	Cgroup    string   `json:"cgroup"` // directory of its cgroup, in which its processes run
	Socket    string   `json:"socket,omitempty"`
	Processes []string `json:"processes,omitempty"` // names, by which the logs are called
}

// newLab names everything that the lab of a Spec will consist of.
func newLab(spec *Spec, cgroupRoot, bpfRoot string) *Lab {
	l := &Lab{
		Name:    spec.Name,
		File:    spec.File,
		Dir:     filepath.Join(StateDir, spec.Name),
		Cgroup:  filepath.Join(cgroupRoot, "sextant-"+spec.Name),
		PID:     os.Getpid(),
		Created: time.Now().UTC().Truncate(time.Second),
	}
	for _, s := range spec.Nodes {
		l.Nodes = append(l.Nodes, *l.newNode(s.Name, bpfRoot))
	}
	return l
}

func (l *Lab) newNode(name, bpfRoot string) *Node {
	return &Node{
		Name:      name,
		Namespace: fmt.Sprintf("sx-%s-%s", l.Name, name),
		Dir:       filepath.Join(l.Dir, "nodes", name),
		BPF:       filepath.Join(bpfRoot, "sextant", l.Name+"-"+name),
		Cgroup:    filepath.Join(l.Cgroup, name),
	}
}

// places are all that has a namespace: the nodes, and the wires.
func (l *Lab) places() []Node {
	places := slices.Clone(l.Nodes)
	if l.Wire != nil {
		places = append(places, *l.Wire)
	}
	return places
}

// Node returns a node by its name. An unknown one is an error that lists those
// that are there.
func (l *Lab) Node(name string) (*Node, error) {
	i := slices.IndexFunc(l.Nodes, func(n Node) bool { return n.Name == name })
	if i >= 0 {
		return &l.Nodes[i], nil
	}
	names := lists.Map(l.Nodes, func(node Node) string { return node.Name })
	return nil, fmt.Errorf("lab %s has no node %q; it has %s", l.Name, name, enumerate(names))
}

// Log returns the file with the output of a node's process.
func (l *Lab) Log(node, process string) string {
	return filepath.Join(l.logDir(), node+"."+process+".log")
}

func (l *Lab) logDir() string { return filepath.Join(l.Dir, "logs") }

// Open finds a lab by its name. One that is not there is an error that wraps
// [os.ErrNotExist].
func Open(name string) (*Lab, error) {
	l, err := readState(filepath.Join(StateDir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no lab %q: %w; \"sextant lab list\" shows those that "+
			"are there", name, os.ErrNotExist)
	}
	return l, err
}

// alive says whether all of a complete lab is still there: it is not after a
// restart of the machine, or when parts were removed by hand.
func (l *Lab) alive() (bool, error) {
	wantsProcesses := false
	for _, node := range l.places() {
		if !linux.NetnsExists(node.Namespace) {
			return false, nil
		}
		wantsProcesses = wantsProcesses || len(node.Processes) > 0
	}
	if !wantsProcesses {
		return true, nil
	}
	if l.Wire != nil { // without it no packet passes the links that it carries
		if carried, err := linux.OpenCgroup(l.Wire.Cgroup).Populated(); err != nil || !carried {
			return false, err
		}
	}
	return linux.OpenCgroup(l.Cgroup).Populated()
}

const stateFile = "lab.json"

func readState(dir string) (*Lab, error) {
	path := filepath.Join(dir, stateFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, linux.Failed(err, "read %s", path)
	}
	l := &Lab{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("read %s: %w; it is no state file of a lab: remove %s", path, err,
			dir)
	}
	return l, nil
}

// write replaces the state file in one step.
func (l *Lab) write() error {
	path := filepath.Join(l.Dir, stateFile)
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o644); err != nil {
		return linux.Failed(err, "write %s", path)
	}
	return linux.Failed(os.Rename(path+".new", path), "write %s", path)
}
