package fabric

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"sextant/config"
	"sextant/controller"
	"sextant/experiment"
	"sextant/lab"
	"sextant/linux"
	"sextant/te/reroute"
)

// smoothieYAML is the network as a lab, with the words NAME, PORT, RATE and LINKS.
//
//go:embed smoothie_lab.yaml
var smoothieYAML string

// The paper's network. A packet counts as packetUnit bytes at ports, which no packet exceeds, so
// that ports send so many packets per second, and queues hold so many.
const (
	smoothieLeaves = 8
	smoothieSpines = 4
	portRate       = 100 // packets per second
	portQueue      = 64  // packets
	packetUnit     = 1700
	packetBytes    = 1500 // of the packets of which loads are a share of the rate
)

const (
	smoothieControl = "[fd00:5e::c0]"
	smoothieToken   = "shown" // of all leaves: nothing but the lab reaches the controller
)

// smoothiePatience is how long an agent may take to start while others do.
const smoothiePatience = 2 * time.Minute

// port is the queueing discipline of a switch's port, as tc(8) has it: the bucket holds one packet.
func port() string {
	return fmt.Sprintf("stab mtu 2048 tsize 512 mpu %d tbf rate %dbit burst %d limit %d",
		packetUnit, portRate*packetUnit*8, packetUnit+50, portQueue*packetUnit)
}

// rate is that of a port, as its queueing discipline counts: of which utilization is a share.
func rate() string { return fmt.Sprintf("%dkbit", portRate*packetUnit*8/1000) }

// spineLinks are the links of a spine with their rates, in its node file.
func spineLinks() string {
	var links []string
	for leaf := range smoothieLeaves {
		links = append(links, fmt.Sprintf("{interface: leaf%d, rate: %s}", leaf+1, rate()))
	}
	return strings.Join(links, ", ")
}

// smoothieLab is the network while it is up.
type smoothieLab struct {
	labHosts
	control *controller.Client
	dir     string // of the controller
}

// inSmoothieLab brings the network up for as long as body takes.
func inSmoothieLab(ctx context.Context, name string,
	body func(context.Context, *smoothieLab) error) error {
	spec, err := smoothieSpec(name)
	if err != nil {
		return err
	}
	return experiment.InLab(ctx, spec, lab.Options{ReadyTimeout: smoothiePatience},
		func(ctx context.Context, a *experiment.Arena) error {
			ctl, err := a.Node("ctl")
			if err != nil {
				return err
			}
			l := &smoothieLab{labHosts: labHosts{Arena: a}, dir: ctl.Dir,
				control: controller.NewClient(filepath.Join(ctl.Dir, "controller.sock"))}
			for _, node := range spec.Nodes {
				if kind := strings.TrimRight(node.Name, "12345678"); kind == "client" ||
					kind == "server" {
					l.names = append(l.names, node.Name)
					l.addresses = append(l.addresses, node.Addresses[0])
				}
			}
			return body(ctx, l)
		})
}

// smoothieSpec is the network with keys for its leaves and its controller.
func smoothieSpec(name string) (*lab.Spec, error) {
	spec, err := lab.Parse("smoothie_lab.yaml",
		[]byte(strings.NewReplacer("NAME", name, "PORT", port(), "RATE", rate(), "LINKS",
			spineLinks()).Replace(smoothieYAML)))
	if err != nil {
		return nil, err
	}
	keys, err := newKeys("router", "controller")
	if err != nil {
		return nil, err
	}
	tokens := strings.Builder{}
	for leaf := range smoothieLeaves {
		fmt.Fprintf(&tokens, "leaf%d %s\n", leaf+1, smoothieToken)
	}
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		secret := func(name, text string) lab.File {
			return lab.File{Name: name, Content: text, Secret: true}
		}
		switch {
		case strings.HasPrefix(n.Name, "leaf"):
			n.Files = append(n.Files, secret("ca.pem", keys["ca.pem"]),
				secret("router.pem", keys["router.pem"]), secret("router.key", keys["router.key"]),
				secret("token", smoothieToken))
		case n.Name == "ctl":
			n.Files = append(n.Files, secret("ca.pem", keys["ca.pem"]),
				secret("controller.pem", keys["controller.pem"]),
				secret("controller.key", keys["controller.key"]),
				secret("tokens", tokens.String()), lab.File{Name: "network.edges",
					Content: smoothieEdges()})
		}
	}
	return spec, nil
}

// smoothieEdges is the network as the controller knows it.
func smoothieEdges() string {
	text := &strings.Builder{}
	fmt.Fprintln(text, "#! delay us")
	for leaf := range smoothieLeaves {
		fmt.Fprintf(text, "#! node leaf%d sid=fcbb:bb00:%d::/128\n", leaf+1, leaf+1)
	}
	for spine := range smoothieSpines {
		fmt.Fprintf(text, "#! node spine%d sid=fcbb:bb00:a%d::/128\n", spine+1, spine+1)
	}
	for leaf := range smoothieLeaves {
		for spine := range smoothieSpines {
			fmt.Fprintf(text, "leaf%d -- spine%d 10 10 %d\n", leaf+1, spine+1,
				portRate*packetBytes*8/1000)
		}
	}
	return text.String()
}

// controllerFile is what the controller does in a setting. Flows that begin are spread by weights
// where the policy has it.
func (x setting) controllerFile(dir string) string {
	text := &strings.Builder{}
	policy := fmt.Sprintf("name: %s", x.Scheme)
	switch x.Scheme {
	case sampledPauses:
		policy = fmt.Sprintf("name: %v, sampled: true", reroute.Smoothie)
	case reroute.Sextant.String():
		policy += fmt.Sprintf(", tau: %v, sampling: %g, groups: %v, flowlet: %v", x.tau(),
			1/float64(x.OneIn), groupsPerTau*x.tau(), flowletPerTau*x.tau())
	}
	fmt.Fprintf(text, `topology: %[1]s/network.edges
block: "fcbb:bb00::/32"
seed: 1
queueBytes: %[2]d
api: {socket: %[1]s/controller.sock}
journal: %[1]s/journal
policy: {%[3]s}
telemetry: {listen: "%[4]s:32766", exporters: ["fd00:5e::/48"]}
southbound:
  listen: "%[4]s:9478"
  decap: e0d6
  lease: 2s
  tokens: %[1]s/tokens
  tls: {ca: %[1]s/ca.pem, certificate: %[1]s/controller.pem, key: %[1]s/controller.key}
routers:
`, dir, portQueue*packetUnit, policy, smoothieControl)
	for leaf := range smoothieLeaves {
		prefixes := ""
		if x.Scheme == reroute.Sextant.String() {
			prefixes = fmt.Sprintf(`, prefixes: ["2001:db8:%d::/48"]`, leaf+1)
		}
		fmt.Fprintf(text, "  - {name: leaf%d, node: %d%s}\n", leaf+1, 200+leaf+1, prefixes)
	}
	for spine := range smoothieSpines {
		fmt.Fprintf(text, "  - {name: spine%d, node: %d}\n", spine+1, 100+spine+1)
	}
	return text.String()
}

// sampledPauses is the scheme of SMOOTHIE with pauses of which packets with telemetry tell alone.
const sampledPauses = "smoothie-sampled"

// Head-ends are told weights as often, in taus, as in the simulator's examples, and flows choose
// again after pauses that are longer than round trips through full queues.
const groupsPerTau, flowletPerTau = 3, 4

// tau is the threshold of pauses.
func (x setting) tau() time.Duration {
	return time.Duration(x.RTTs * tunedRTT * float64(time.Millisecond))
}

// telemetry is what a leaf does in a setting.
func (x setting) telemetry(t *config.Telemetry) {
	t.Source.OneIn, t.Sink.Gap = x.OneIn, x.tau()
	t.Source.Metadata, t.Sink.Report = nil, []config.TelemetryReason{config.ReportGap,
		config.ReportEach}
	switch x.Scheme {
	case reroute.Sextant.String(): // it spreads flows by how much of links is used
		t.Source.Metadata = []config.TelemetryMetadata{"node", "queue", "utilization"}
	case reroute.Clove.String(): // it looks at queues that are nearly full, and at nothing else
		t.Sink.Report = []config.TelemetryReason{config.ReportQueue}
		t.Sink.QueueBytes = int(reroute.Defaults(reroute.Clove).Threshold * portQueue * packetUnit)
	}
}

// tune has leaves put telemetry into packets, and report pauses, as a setting has it.
func (l *smoothieLab) tune(ctx context.Context, x setting) error {
	for leaf := range smoothieLeaves {
		if err := l.Change(ctx, fmt.Sprint("leaf", leaf+1), func(n *config.Node) {
			x.telemetry(n.Telemetry)
		}); err != nil {
			return err
		}
	}
	return nil
}

// controlled runs a controller by a file while body runs. It waits until all leaves follow it.
func (l *smoothieLab) controlled(ctx context.Context, text string,
	body func(context.Context) error) error {
	file := filepath.Join(l.dir, "controller.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(l.dir, "journal")); err != nil && !os.IsNotExist(err) {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(running, self, "controller", "-f", file)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	group, within := errgroup.WithContext(running)
	group.Go(func() error {
		err := l.Exec("ctl", cmd)
		if running.Err() != nil { // it was asked to end
			return nil
		}
		return fmt.Errorf("the controller ended: %w: %s", errors.Join(err), &said)
	})
	group.Go(func() error {
		defer stop()
		if err := l.followed(within); err != nil {
			return err
		}
		return body(within)
	})
	return group.Wait()
}

// followed waits until all leaves follow the controller.
func (l *smoothieLab) followed(ctx context.Context) error {
	for {
		s, err := l.control.Status(ctx)
		leaves := 0
		for _, h := range s.HeadEnds {
			if h.Followed {
				leaves++
			}
		}
		if err == nil && leaves == smoothieLeaves {
			return nil
		}
		if err := sleepUntil(ctx, time.Now().Add(20*time.Millisecond)); err != nil {
			return err
		}
	}
}

// forget takes the paths of flows back, so that the next run begins as the first one does.
func (l *smoothieLab) forget(ctx context.Context) error {
	for leaf := range smoothieLeaves {
		agent := l.Agents[fmt.Sprint("leaf", leaf+1)]
		paths, err := agent.FlowPaths(ctx)
		if err != nil {
			return err
		}
		for _, p := range paths {
			if err := agent.RemoveFlowPath(ctx, p.Flow); err != nil {
				return err
			}
		}
	}
	return nil
}

// moves reads the decisions that moved flows from the controller's journal.
func (l *smoothieLab) moves() (moved []controller.Decision, err error) {
	text, err := os.ReadFile(filepath.Join(l.dir, "journal"))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var d controller.Decision
		if err := json.Unmarshal(line, &d); err != nil {
			return nil, fmt.Errorf("the controller's journal: %w", err)
		}
		if d.Verdict == reroute.Moved.String() {
			moved = append(moved, d)
		}
	}
	return moved, nil
}

// ports sums up what the ports of all switches have dropped, and how many bytes wait there.
func (l *smoothieLab) ports() (drops, waiting uint64, err error) {
	for name, space := range l.Spaces {
		if !strings.HasPrefix(name, "leaf") && !strings.HasPrefix(name, "spine") {
			continue
		}
		err = space.Do(func() error {
			links, err := netlink.LinkList()
			if err != nil {
				return linux.Failed(err, "list links of %s", name)
			}
			for _, link := range links {
				list, err := netlink.QdiscList(link)
				if err != nil {
					return linux.Failed(err, "read a queue of %s", name)
				}
				for _, q := range list {
					if _, ok := q.(*netlink.Tbf); ok && q.Attrs().Statistics != nil {
						drops += uint64(q.Attrs().Statistics.Queue.Drops)
						waiting += uint64(q.Attrs().Statistics.Queue.Backlog)
					}
				}
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return drops, waiting, nil
}

// empty waits until nothing is on its way, and returns what was dropped until then.
func (l *smoothieLab) empty(ctx context.Context) (drops uint64, err error) {
	for {
		drops, waiting, err := l.ports()
		if err != nil || waiting == 0 {
			return drops, err
		}
		if err := sleepUntil(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return 0, err
		}
	}
}
