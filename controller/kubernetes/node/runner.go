package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/linux"
)

// Settings are of a node and all its pods.
type Settings struct {
	Node    string
	Class   string
	Default bool // Services without a class, too
	// GatewayAPI says that the cluster has the kinds of the Gateway API.
	GatewayAPI bool
	Locator    netip.Prefix
	Template   *config.Node
	Sextant    string // path of the program
	Dir        string // for state and sockets of pods
	Log        *slog.Logger
}

// runner has the agent of one pod.
type runner struct {
	Settings
	pod    Pod
	place  place
	ns     *linux.Netns
	wiring wiring
	iface  string // of the pod, by which packets arrive
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the agent has ended
	wake   chan struct{} // told that an agent that ran has ended
	text   string        // node file that runs
	// targets are the ports that are set; nil: it is not known which
	targets []datapath.TargetPort
}

// leftovers are pods that an earlier daemon gave something: those that are wanted no longer are
// ended as others are.
func (s Settings) leftovers(wake chan struct{}) (map[string]*runner, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, err
	}
	list := map[string]*runner{}
	for _, e := range entries {
		r := &runner{Settings: s, wake: wake, pod: Pod{UID: e.Name(), Name: e.Name()}}
		text, err := os.ReadFile(r.wiringFile())
		if err != nil || !plainUID(e.Name()) || json.Unmarshal(text, &r.wiring) != nil {
			continue
		}
		list[e.Name()] = r
	}
	return list, nil
}

func (r *runner) wiringFile() string { return filepath.Join(r.dirOf(r.pod.UID), "wiring.json") }

// wire notes what a pod is given before it gets it, and what it had until that is gone.
func (r *runner) wire(p Pod) error {
	before := r.wiring
	w := wiringOf(p, r.Locator)
	on, err := forwards(r.ns)
	if err != nil {
		return err
	}
	w.Forwards = before.Forwards || !on
	if err := os.MkdirAll(r.dirOf(p.UID), 0o700); err != nil {
		return err
	}
	if err := r.note(w.and(before)); err != nil {
		return err
	}
	if r.iface, err = w.wire(p, r.ns, r.Locator, before); err != nil {
		return err
	}
	if err := r.note(w); err != nil {
		return err
	}
	return r.setTargets(p.targets())
}

// note keeps what a pod has, for this daemon and the next.
func (r *runner) note(w wiring) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := linux.WriteFile(r.wiringFile(), text); err != nil {
		return err
	}
	r.wiring = w
	return nil
}

// setTargets lets the pod's sockets take what comes to other ports than theirs.
func (r *runner) setTargets(list []datapath.TargetPort) error {
	dir, err := r.pinDir()
	if err != nil || r.targets != nil && slices.Equal(list, r.targets) {
		return err
	}
	if len(list) == 0 {
		err = datapath.UnsetTargetPorts(r.ns, dir)
	} else {
		err = datapath.SetTargetPorts(r.ns, dir, r.iface, list)
	}
	if err == nil {
		r.targets = append([]datapath.TargetPort{}, list...)
	}
	return err
}

// pinDir is where the programs of a pod's ports are pinned.
func (r *runner) pinDir() (string, error) {
	bpffs, _, err := linux.BPFFS()
	return filepath.Join(bpffs, "sextant-kubernetes", r.pod.UID), err
}

func (s Settings) dirOf(uid string) string { return filepath.Join(s.Dir, uid) }

func (r *runner) file() string { return filepath.Join(r.dirOf(r.pod.UID), "node.yaml") }

// running reports whether the agent has not ended.
func (r *runner) running() bool {
	if r.cmd == nil {
		return false
	}
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// bring makes a pod take packets for what it serves. It may be called again, with more or less.
func (r *runner) bring(ctx context.Context, p Pod) (err error) {
	if r.ns == nil || !same(r.place.netns, r.ownNetns()) {
		if r.place, err = find("/proc", p.UID); err != nil {
			return err
		}
		if r.ns != nil {
			r.stop()
			r.ns.Close()
			r.targets = nil
		}
		if r.ns, err = openNetns(r.place.netns); err != nil {
			r.ns = nil
			return err
		}
	}
	r.pod = p
	if err := r.wire(p); err != nil {
		return err
	}
	text, err := p.File(r.Template, r.Locator, r.iface, r.place.cgroup, r.dirOf(p.UID))
	if err != nil {
		return err
	}
	switch {
	case !r.running():
		err = r.start(ctx, text)
	case string(text) != r.text:
		err = r.apply(ctx, text)
	}
	if err == nil {
		r.text = string(text)
	}
	return err
}

// ownNetns is the namespace that is open, as a file.
func (r *runner) ownNetns() string { return fmt.Sprintf("/proc/self/fd/%d", r.ns.FD()) }

// start starts the agent, and waits until it answers.
func (r *runner) start(ctx context.Context, text []byte) error {
	dir := r.dirOf(r.pod.UID)
	if err := linux.WriteFile(r.file(), text); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(r.Sextant, "agent", "-f", r.file(), "--break-connections")
	cmd.Stdout, cmd.Stderr = log, log
	// Memory matters more than time: there is one for each pod.
	cmd.Env = append(os.Environ(), "GOGC=40", "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := linux.Start(cmd, r.ns, nil); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says why
		close(ended)
	}()
	r.cmd, r.ended = cmd, ended
	err = r.await(ctx)
	if err == nil || r.running() { // else it is tried again by and by
		go func() {
			<-ended
			poke(r.wake)
		}()
	}
	return err
}

// startTime bounds how long an agent takes to answer.
const startTime = 30 * time.Second

func (r *runner) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	client := r.client()
	for {
		_, err := client.Status(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.ended:
			text, _ := os.ReadFile(filepath.Join(r.dirOf(r.pod.UID), "log"))
			return fmt.Errorf("the agent of pod %s has ended: %s", r.pod.Name, lastLine(text))
		case <-ctx.Done():
			return fmt.Errorf("the agent of pod %s: %w", r.pod.Name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func lastLine(text []byte) string {
	for end := len(text); end > 0; end-- {
		if text[end-1] != '\n' {
			continue
		}
		start := end - 1
		for start > 0 && text[start-1] != '\n' {
			start--
		}
		if start < end-1 {
			return string(text[start : end-1])
		}
	}
	return string(text)
}

func (r *runner) client() *api.Client {
	return api.NewClient(filepath.Join(r.dirOf(r.pod.UID), "agent.sock")).BreakingConnections()
}

func (r *runner) apply(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := linux.WriteFile(r.file(), text); err != nil {
		return err
	}
	_, err := r.client().Apply(ctx, r.file(), text, false)
	return err
}

// stop ends the agent. Its programs stay, and take packets on.
func (r *runner) stop() {
	if !r.running() {
		return
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
	select {
	case <-r.ended:
	case <-time.After(5 * time.Second):
		_ = r.cmd.Process.Kill()
		<-r.ended
	}
}

// end removes all that a pod was given. After an error the directory is there still, with what it
// takes to call it again.
func (r *runner) end() error {
	r.stop()
	var alive *linux.Netns
	if at, err := find("/proc", r.pod.UID); err == nil {
		if r.ns == nil {
			r.ns, _ = openNetns(at.netns) // nil if the pod ends just now
		}
		alive = r.ns
	}
	err := unwire(r.wiring, alive)
	if dir, failed := r.pinDir(); failed == nil {
		err = errors.Join(err, datapath.UnsetTargetPorts(alive, dir))
	}
	if _, statErr := os.Stat(r.file()); statErr == nil {
		out, failed := exec.Command(r.Sextant, "unload", "-f", r.file()).CombinedOutput()
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("unload pod %s: %w: %s", r.pod.Name, failed, out))
		}
	}
	if r.ns != nil {
		r.ns.Close()
	}
	if r.ns, r.targets = nil, nil; err != nil {
		return err
	}
	return os.RemoveAll(r.dirOf(r.pod.UID))
}
