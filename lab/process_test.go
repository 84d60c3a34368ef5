package lab_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"sextant/lab"
	"sextant/linux"
)

func TestProcessesRunAndEndWithTheLab(t *testing.T) {
	name := newName(t)
	spec := parse(t, name, `
name: NAME
topology:
  nodes:
    a:
      exec: ["echo made > {dir}/made", [touch, "{dir}/touched"]]
      files: {conf/x.conf: "node {node} of {lab} in {dir}\n"}
      processes:
        - name: tell
          command: "echo $GREETING from $SEXTANT_NODE of $SEXTANT_LAB; touch told; exec sleep 1000"
          env: {GREETING: "hello {node}"}
          ready: file:told
        - {name: forks, command: "sleep 1000 & sleep 1000 & wait"}
        - {name: socket, command: ["{self}", helper, unix, "{dir}/s.sock"], ready: "unix:{dir}/s.sock"}
        - {name: asked, command: ["{self}", helper, sleep, ""], ready: "exec:test -S s.sock"}
`)
	var r recorder
	l, err := lab.Up(t.Context(), spec, lab.Options{Events: r.add})
	if err != nil {
		t.Fatal(err)
	}
	node := nodeOf(t, l, "a")
	wantFile(t, filepath.Join(node.Dir, "made"), "made\n")
	wantFile(t, filepath.Join(node.Dir, "touched"), "")
	wantFile(t, filepath.Join(node.Dir, "conf/x.conf"), "node a of "+name+" in "+node.Dir+"\n")
	wantFile(t, l.Log("a", "tell"), "hello a from a of "+name+"\n")
	wantEvents := strings.Fields(`lab.NetworkBuilt lab.CommandDone lab.CommandDone
		lab.ProcessStarted lab.ProcessReady lab.ProcessStarted lab.ProcessReady
		lab.ProcessStarted lab.ProcessReady lab.ProcessStarted lab.ProcessReady lab.LabUp`)
	if diff := cmp.Diff(wantEvents, r.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var pids []int
	eventually(t, "6 processes run", func() bool { // one forks in its own time
		pids, err = linux.OpenCgroup(node.Cgroup).Processes()
		return err == nil && len(pids) == 6
	})
	if err := lab.Down(name, r.add); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil && !isZombie(pid) {
			t.Errorf("process %d lives after Down", pid)
		}
	}
	nothingLeft(t, name)
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

// isZombie says whether a process is dead and only not waited for.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestRestart(t *testing.T) {
	l := up(t, `
name: NAME
topology:
  nodes:
    a:
      addresses: ["fd00::1"]
      processes:
        - {name: server, command: ["{self}", helper, tcp, "[fd00::1]:80"], ready: "tcp://[fd00::1]:80", restart: true}
`)
	node := nodeOf(t, l, "a")
	server := func() int {
		pids, err := linux.OpenCgroup(node.Cgroup).Processes()
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			if command, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid),
				"cmdline")); err == nil && strings.Contains(string(command),
				"\x00helper\x00tcp\x00") && !strings.HasPrefix(string(command), "/bin/sh") {
				return pid
			}
		}
		return 0
	}
	first := server()
	if first == 0 {
		t.Fatal("the server does not run")
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server runs again", func() bool {
		pid := server()
		return pid != 0 && pid != first
	})
	log, err := os.ReadFile(l.Log("a", "server"))
	if err != nil || !strings.Contains(string(log), "ended with status 137, starting it again") {
		t.Errorf("log: %q, %v", log, err)
	}
}

const withAgent = `
name: NAME
topology:
  nodes:
    edge:
      sextant:
        node: edge # the lab leaves this text alone
        api: {socket: "{dir}/agent.sock"}
        edge: {interfaces: [{name: eth0}]}
      processes:
        - {name: after, command: "test -S agent.sock && exec sleep 1000"}
    router:
  links:
    - endpoints: ["edge:eth0", "router:edge"]
    - endpoints: ["edge:eth1", "router:edge-too"]
`

func TestAgent(t *testing.T) {
	name := newName(t)
	spec := parse(t, name, withAgent)
	checked := map[string]string{}
	options := lab.Options{
		Agent: []string{"{self}", "helper", "unix", "{dir}/agent.sock"},
		CheckNode: func(node string, config []byte) error {
			checked[node] = string(config)
			return nil
		},
	}
	l, err := lab.Up(t.Context(), spec, options)
	if err != nil {
		t.Fatal(err)
	}
	node := nodeOf(t, l, "edge")
	if node.Socket != node.Dir+"/agent.sock" {
		t.Errorf("socket is %s", node.Socket)
	}
	path := filepath.Join(node.Dir, "node.yaml")
	wantFile(t, path, checked["edge"])
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s may be read by others: %v, %v", path, info.Mode(), err)
	}
	if !strings.Contains(checked["edge"], "socket: \""+node.Socket+"\"") {
		t.Errorf("the configuration was checked as\n%s", checked["edge"])
	}
	inside(t, l, "edge", func() error {
		for port, wantPass := range map[string]bool{"eth0": false, "eth1": true} {
			link, err := netlink.LinkByName(port)
			if err != nil {
				return err
			}
			if xdp := link.Attrs().Xdp; (xdp != nil && xdp.Attached) != wantPass {
				t.Errorf("%s has XDP %+v, the pass program wanted: %v", port, xdp, wantPass)
			}
		}
		return nil
	})
}

func TestAgentConfigurationIsRefusedBeforeAnythingIsMade(t *testing.T) {
	name := newName(t)
	refusal := errors.New("edge: no such thing")
	var r recorder
	_, err := lab.Up(t.Context(), parse(t, name, withAgent), lab.Options{
		Events:    r.add,
		CheckNode: func(string, []byte) error { return refusal },
	})
	wantError(t, err, refusal, "the configuration of node edge: edge: no such thing")
	if len(r.events) != 0 {
		t.Errorf("events before the refusal: %v", r.events)
	}
	nothingLeft(t, name)
}

func TestDownRemovesPins(t *testing.T) {
	l := up(t, "name: NAME\ntopology: {nodes: {a: }}\n")
	node := nodeOf(t, l, "a")
	if err := os.MkdirAll(filepath.Join(node.BPF, "maps"), 0o755); err != nil {
		t.Fatal(err)
	}
	pinned, err := ebpf.NewMap(&ebpf.MapSpec{Name: "pinned", Type: ebpf.Array, KeySize: 4,
		ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	if err := pinned.Pin(filepath.Join(node.BPF, "maps", "pinned")); err != nil {
		t.Fatal(err)
	}
	if err := lab.Down(l.Name, nil); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, l.Name)
}

func TestExec(t *testing.T) {
	l := up(t, "name: NAME\ntopology: {nodes: {a: {addresses: ['192.0.2.7']}}}\n")
	again, err := lab.Open(l.Name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c",
		"cat; echo $SEXTANT_NODE; readlink /proc/self/ns/net; cat /proc/self/cgroup; exit 3")
	var output strings.Builder
	cmd.Stdin, cmd.Stdout = strings.NewReader("in\n"), &output
	err = again.Exec("a", cmd)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Exec: %v, want exit status 3", err)
	}
	namespace, err := os.Stat(linux.NetnsPath(nodeOf(t, l, "a").Namespace))
	if err != nil {
		t.Fatal(err)
	}
	inode := strconv.FormatUint(namespace.Sys().(*syscall.Stat_t).Ino, 10)
	for _, want := range []string{"in\na\n", "net:[" + inode + "]", "/sextant-" + l.Name + "/a\n"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("output %q lacks %q", output.String(), want)
		}
	}
	wantError(t, again.Exec("b", exec.Command("true")), nil, `has no node "b"; it has a`)
	_, err = lab.Open("no-such-lab")
	wantError(t, err, os.ErrNotExist, `there is no lab "no-such-lab"`, "sextant lab list")
}
