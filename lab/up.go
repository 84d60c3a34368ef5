package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sextant/linux"
)

// ErrRunning says that a lab of that name is up.
var ErrRunning = errors.New("the lab is up already")

// Options say how a lab is brought up. The zero value will do.
type Options struct {
	// Self is the path of the sextant program, {self} in the lab file. Optional: this program.
	Self string
	// Agent runs the Sextant agent of a node; the words of [Spec] are written
	// out. Optional: {self} agent -f {dir}/node.yaml.
	Agent []string
	// CheckNode says what is wrong with a node's Sextant configuration, before anything is built.
	// Optional.
	CheckNode func(node string, config []byte) error
	// Wire is what impairs links that don't say it themselves. Optional: WireAuto.
	Wire WireKind
	// WireProcess carries the packets of user-space wires; the words of [Spec] are written out.
	// Optional: {self} lab wire {dir}/wire.json.
	WireProcess []string
	// Events is told of each step, never twice at the same time. Optional.
	Events func(Event)
	// ReadyTimeout is how long a process may take to be ready. Optional: [DefaultReadyTimeout].
	ReadyTimeout time.Duration
	// SettleTime is how long a process without a ready condition must live. Optional: 50
	// milliseconds.
	SettleTime time.Duration
	// Stdout and Stderr take the output of the steps of [Run]. Optional: it is discarded.
	Stdout, Stderr io.Writer
}

// DefaultReadyTimeout suits machines that do much else; on an idle one a process takes a second.
const DefaultReadyTimeout = 30 * time.Second

const defaultSettleTime = 50 * time.Millisecond

func (o Options) withDefaults() (Options, error) {
	if o.Self == "" {
		self, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("find the path of this program: %w", err)
		}
		o.Self = self
	}
	if o.Agent == nil {
		o.Agent = []string{"{self}", "agent", "-f", "{dir}/" + nodeFile}
	}
	if o.WireProcess == nil {
		o.WireProcess = []string{"{self}", "lab", "wire", "{dir}/" + wireFile}
	}
	o.ReadyTimeout = cmp.Or(o.ReadyTimeout, DefaultReadyTimeout)
	o.SettleTime = cmp.Or(o.SettleTime, defaultSettleTime)
	return o, nil
}

// Up brings a lab up: it is complete and all its processes are ready when Up
// returns, and stays until [Down]. What a crash left of an earlier lab of this
// name is removed first. An error, or the end of the context, removes all that
// was made.
//
// The error wraps [ErrRunning] if the lab is up, [ErrBusy] if another process
// is at work on it, and is of type [Faults] if the Spec is wrong.
func Up(ctx context.Context, spec *Spec, opts Options) (*Lab, error) {
	began := time.Now()
	h, err := bringUp(ctx, spec, opts)
	if err != nil {
		return nil, err
	}
	defer h.lock.release()
	h.lab.Complete = true
	if err := h.lab.write(); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	h.reports.event(LabUp{spec.Name, time.Since(began)})
	return h.lab, nil
}

// held is a lab that this process has brought up and holds the lock of.
type held struct {
	lab     *Lab
	spec    *Spec
	opts    Options
	lock    *lock
	reports *reporter
}

// bringUp does all of Up but release the lab.
func bringUp(ctx context.Context, spec *Spec, opts Options) (_ *held, err error) {
	opts, err = opts.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &held{spec: spec, opts: opts, reports: newReporter(opts.Events)}
	nodes, fabric, err := h.plan()
	if err != nil {
		return nil, err
	}
	if h.lock, err = lockLab(spec.Name); err != nil {
		return nil, err
	}
	if err := h.claim(); err != nil {
		h.lock.release()
		return nil, err
	}
	if err := h.make(ctx, nodes, fabric); err != nil {
		err = errors.Join(stopped(ctx, err), h.remove())
		h.lock.release()
		return nil, err
	}
	return h, nil
}

// stopped replaces whatever error the end of the context led to.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("stopped: %w: %w", ctx.Err(), cause)
	}
	return fmt.Errorf("stopped: %w", ctx.Err())
}

// plan works out everything that can be wrong before anything is made.
func (h *held) plan() ([]NodeSpec, *fabric, error) {
	var r report
	validate(&r, h.spec)
	if err := r.err(nil); err != nil {
		return nil, nil, err
	}
	fabric, err := newFabric(h.spec)
	if err != nil {
		return nil, nil, err
	}
	if err := chooseWires(fabric, h.opts.Wire, kernelHasNetem()); err != nil {
		return nil, nil, err
	}
	cgroups, err := h.mounted("cgroup2", linux.CgroupRoot)
	if err != nil {
		return nil, nil, err
	}
	bpf, err := h.mounted("bpf", linux.BPFFS)
	if err != nil {
		return nil, nil, err
	}
	h.lab = newLab(h.spec, cgroups, bpf)
	h.lab.addWire(fabric, bpf)
	nodes := make([]NodeSpec, len(h.spec.Nodes))
	for i, node := range h.spec.Nodes {
		if nodes[i], err = settle(h.lab, &h.lab.Nodes[i], node, h.opts); err != nil {
			return nil, nil, err
		}
	}
	return nodes, fabric, nil
}

func (h *held) mounted(fileSystem string, find func() (string, bool, error)) (string, error) {
	dir, mounted, err := find()
	if mounted {
		h.reports.event(Mounted{fileSystem, dir})
	}
	return dir, err
}

// claim makes sure that the names of the lab are free, and takes them by
// writing the state file.
func (h *held) claim() error {
	old, err := readState(h.lab.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if old != nil {
		if err := h.clearOld(old); err != nil {
			return err
		}
	}
	for _, node := range h.lab.places() {
		if linux.NetnsExists(node.Namespace) {
			return fmt.Errorf("network namespace %s is there, but no lab %s is; if nothing needs "+
				"it, delete it with \"ip netns del %s\"",
				node.Namespace, h.lab.Name, node.Namespace)
		}
	}
	return h.lab.write()
}

// clearOld removes what a crash left of a lab with this name.
func (h *held) clearOld(old *Lab) error {
	if old.Complete {
		alive, err := old.alive()
		if err != nil {
			return err
		}
		if alive {
			return fmt.Errorf("%w: %s, since %s; take it down with \"sextant lab down %s\"",
				ErrRunning, old.Name, old.Created.Format(time.RFC3339), old.Name)
		}
	}
	if err := old.removeParts(); err != nil { // not the directory: we hold its lock
		return fmt.Errorf("remove what is left of an earlier lab %s: %w", old.Name, err)
	}
	h.reports.event(LeftoversRemoved{old.Name})
	return nil
}

// make builds the network and starts the processes.
func (h *held) make(ctx context.Context, nodes []NodeSpec, f *fabric) error {
	began := time.Now()
	if err := h.makeDirs(); err != nil {
		return err
	}
	routes, err := buildNetwork(ctx, h.lab, f)
	if err != nil {
		return err
	}
	h.reports.event(NetworkBuilt{len(f.nodes), len(f.links), routes, time.Since(began)})
	if err := h.startWire(ctx, f); err != nil {
		return err
	}
	return each(ctx, len(nodes), func(ctx context.Context, i int) error {
		s := starter{lab: h.lab, node: &h.lab.Nodes[i], reports: h.reports,
			patience: h.opts.ReadyTimeout, settle: h.opts.SettleTime}
		if err := s.start(ctx, nodes[i]); err != nil {
			return fmt.Errorf("node %s: %w", nodes[i].Name, err)
		}
		return nil
	})
}

// makeDirs makes the directories of the nodes, of their logs and of their
// cgroups.
func (h *held) makeDirs() error {
	dirs := []string{h.lab.logDir()}
	for _, node := range h.lab.places() {
		dirs = append(dirs, node.Dir)
		if _, err := linux.CreateCgroup(node.Cgroup); err != nil {
			return err
		}
		// Pins without a lab are from one whose state was lost.
		if err := os.RemoveAll(node.BPF); err != nil {
			return linux.Failed(err, "remove old pins in %s", node.BPF)
		}
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return linux.Failed(err, "create %s", dir)
		}
	}
	return nil
}

// remove takes the lab down.
func (h *held) remove() error {
	began := time.Now()
	if err := h.lab.remove(); err != nil {
		return err
	}
	h.reports.event(LabDown{h.lab.Name, time.Since(began)})
	return nil
}
