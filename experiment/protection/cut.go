package protection

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
	"sextant/lab/netem"
	"sextant/linux"
)

var cut = experiment.Experiment{
	Name:   "protection-cut",
	Title:  "Paths that are cut under a stream",
	Source: "IEEE 802.1CB-2017, with paths that are replaced when they fail",
	Shows: "1,000 datagrams a second over two and over three paths that share nothing, of which " +
		"one, or two at once, are cut without " +
		"a word: what is lost, and how long it takes until another path is installed. Then " +
		"nothing is cut on a busy machine: what is " +
		"replaced nevertheless.",
	Paper: experiment.Ours, Needs: []string{"root"}, Lasts: "5 min",
	Run: runCut,
}

// Of the experiment.
const (
	cutTrials  = 40
	cutStream  = time.Second
	cutPatient = 20 * time.Second
	ladderWays = 4 // of examples/protect.yaml
)

// blow is how many of how many paths are cut at once.
type blow struct{ Copies, Cuts int }

// blows are what is tried.
var blows = []blow{{2, 1}, {3, 1}, {3, 2}}

// aftermath is what became of streams when paths were cut.
type aftermath struct {
	Sent, Lost, Twice int
	// from the cut until others were installed in place of what was cut
	Ms     []float64
	Steps  [len(steps)][]float64
	Faults uint64
}

// steps are the parts of the time from before a cut until the stream has other paths.
var steps = [...]string{
	"the links are cut, by a call of the lab", "until the last path is known to be silent",
	"until it is known what carries instead",
	"until the kernel has installed it",
	"from the beginning until the first copy over another path",
}

func runCut(ctx context.Context, r *experiment.Recorder) error {
	outcomes := make([]aftermath, len(blows))
	var calm calmness
	in := func(ctx context.Context, l *experiment.Arena) (err error) {
		c := cutting{arena: &arena{l}, headend: l.Agents["r1"]}
		for i, b := range blows {
			if outcomes[i], err = c.trials(ctx, b, r.Requests(cutTrials)); err != nil {
				return fmt.Errorf("%d of %d paths cut: %w", b.Cuts, b.Copies, err)
			}
			r.Progress("%d of %d paths cut", b.Cuts, b.Copies)
		}
		lasts := busyLasts
		if r.Quick() {
			lasts = busyQuick
		}
		calm, err = c.busy(ctx, lasts)
		return err
	}
	if err := experiment.InExample(ctx, "protection-cut", examples.Protect, nil, lab.Options{},
		in); err != nil {
		return err
	}
	reportCut(r, outcomes)
	reportBusy(r, calm)
	return nil
}

// cutting is the lab of examples/protect.yaml.
type cutting struct {
	*arena
	headend *api.Client
}

const cutName = "video"

// trials protects the stream, and strikes so often.
func (c *cutting) trials(ctx context.Context, b blow, count int) (sum aftermath, err error) {
	if err := c.protect(ctx, b.Copies); err != nil {
		return sum, err
	}
	for range count {
		if err := c.trial(ctx, b, &sum); err != nil {
			return sum, err
		}
	}
	_, err = c.headend.DeleteProtection(ctx, cutName)
	return sum, err
}

// protect protects the stream.
func (c *cutting) protect(ctx context.Context, copies int) error {
	if err := c.awaitTopology(ctx); err != nil {
		return err
	}
	_, err := c.headend.Protect(ctx, cutName, api.ProtectionSpec{
		To: "r7", Egress: netip.MustParseAddr("fcbb:bb00:7:f::"), Copies: copies,
		Match: []api.Traffic{{Destination: "2001:db8:b::/64", Protocol: "udp"}},
	}, false)
	return err
}

// trial strikes once, and mends it.
func (c *cutting) trial(ctx context.Context, b blow, sum *aftermath) error {
	var struck []string
	s, err := c.telemetry(ctx, cutStream, func() error {
		whole, err := c.await(ctx, func(x api.Protection) bool {
			return len(waysOf(x,
				true)) == b.Copies
		})
		if err != nil {
			return err
		}
		struck = waysOf(whole, true)[:b.Cuts]
		watch, err := c.watchOthers(waysOf(whole, true))
		if err != nil {
			return err
		}
		defer watch.close()
		began := time.Now()
		if err := c.strike(ctx, struck, true); err != nil {
			return err
		}
		cut := time.Now()
		x, err := c.await(ctx, func(x api.Protection) bool {
			ways := waysOf(x, false)
			return len(ways) == min(b.Copies, ladderWays-b.Cuts) &&
				!slices.ContainsFunc(struck, func(way string) bool {
					return slices.Contains(ways,
						way)
				})
		})
		if err != nil {
			return err
		}
		sum.Ms = append(sum.Ms, x.Changed.Sub(began).Seconds()*1e3)
		if r := x.Replaced; r != nil {
			for i, span := range []time.Duration{cut.Sub(began), r.Noticed.Sub(cut),
				r.Decided.Sub(r.Noticed), r.Installed.Sub(r.Decided)} {
				sum.Steps[i] = append(sum.Steps[i], span.Seconds()*1e3)
			}
		}
		if at, came := watch.first(); came {
			last := len(steps) - 1
			sum.Steps[last] = append(sum.Steps[last], at.Sub(began).Seconds()*1e3)
		}
		return nil
	})
	if err != nil {
		return err
	}
	sum.Sent, sum.Lost, sum.Twice, sum.Faults = sum.Sent+s.Sent, sum.Lost+s.Lost,
		sum.Twice+s.Duplicates, sum.Faults+s.Faults
	return c.strike(ctx, struck, false)
}

// watchOthers looks out for copies over the ways that do not carry.
func (c *cutting) watchOthers(carrying []string) (*lookout, error) {
	var others []*linux.Netns
	for way := 1; way <= ladderWays; way++ {
		if !slices.Contains(carrying, strconv.Itoa(way)) {
			others = append(others, c.Spaces["b"+strconv.Itoa(way)])
		}
	}
	return watchFor(others, "r1")
}

// waysOf are the ways of the ladder that paths which carry take, by number; only those whose probes
// come back, if so asked.
func waysOf(x api.Protection, answering bool) (ways []string) {
	for _, p := range x.Paths {
		if p.Role == api.Carries && (!answering || p.Probes == "answers") {
			_, way, _ := strings.Cut(p.Links[0], ">b")
			ways = append(ways, way)
		}
	}
	return ways
}

// strike cuts ways in their middle, or mends them.
func (c *cutting) strike(ctx context.Context, ways []string, is bool) error {
	for _, way := range ways {
		if err := c.ChangeLinks(ctx, "b"+way+"--c"+way, lab.LinkChange{
			Profile: func(p *netem.Profile) error { p.Cut = is; return nil },
		}); err != nil {
			return err
		}
	}
	return nil
}

// await asks until the protection is as wanted.
func (c *cutting) await(ctx context.Context,
	holds func(api.Protection) bool) (api.Protection, error) {
	for deadline := time.Now().Add(cutPatient); ; time.Sleep(time.Millisecond) {
		x, err := c.headend.Protection(ctx, cutName)
		if err != nil || holds(x) {
			return x, err
		}
		if time.Now().After(deadline) {
			return x, fmt.Errorf("the protection did not come to what was awaited within %v: it "+
				"is %s, %s", cutPatient, x.State, x.Reason)
		}
	}
}

func (c *cutting) awaitTopology(ctx context.Context) error {
	for deadline := time.Now().Add(cutPatient); ; time.Sleep(10 * time.Millisecond) {
		told, err := c.headend.Topology(ctx)
		if err == nil && told.NodeLink != "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the head-end has read no topology: %s", told.Problem)
		}
	}
}

func reportCut(r *experiment.Recorder, outcomes []aftermath) {
	t := experiment.Table{Name: "cuts", Title: "Streams whose paths were cut", Columns: []string{
		"Copies", "Cut at once", "Cuts", "Datagrams", "Lost", "Twice", "Replaced after, ms: min",
		"Median", "90 %", "Max",
		"Faults of the machine",
	}}
	for i, b := range blows {
		o := outcomes[i]
		s := statisticsOf(o.Ms)
		cells := []string{strconv.Itoa(b.Copies), strconv.Itoa(b.Cuts), strconv.Itoa(len(o.Ms)),
			strconv.Itoa(o.Sent), strconv.Itoa(o.Lost),
			strconv.Itoa(o.Twice)}
		for _, ms := range []float64{s.least, s.median, s.p90, s.most} {
			cells = append(cells, milliseconds(ms))
		}
		t.Rows = append(t.Rows, append(cells, strconv.FormatUint(o.Faults, 10)))
		says := "no packet lost, none twice"
		if o.Lost > 0 || o.Twice > 0 {
			says = "packets were lost or came twice"
		}
		first := statisticsOf(o.Steps[len(steps)-1])
		r.Compare(experiment.Comparison{
			What: fmt.Sprintf("%d copies, %d cut at once: lost, twice; replaced after; the first "+
				"copy over another path after", b.Copies,
				b.Cuts),
			Source: "0, 0; under 50 ms",
			Ours: fmt.Sprintf("%d, %d of %d; median %s ms, at most %s ms; median %s ms, at most "+
				"%s ms", o.Lost, o.Twice, o.Sent,
				milliseconds(s.median), milliseconds(s.most), milliseconds(first.median),
				milliseconds(first.most)),
			Says: says,
		})
	}
	r.Table(t)
	r.Table(stepsTable(outcomes))
	r.Note("The lab is that of examples/protect.yaml: four ways of three links, 1 ms each way in " +
		"the middle, probes each 10 ms, a path " +
		"silent after 3 without an answer while another one answers. The time is from before the " +
		"cut until the head-end's table is " +
		"replaced, and no processor reads the one before any more; packets take the new one as " +
		"soon as it is there, which the first " +
		"copy shows.")
}

// stepsTable says where the time goes.
func stepsTable(outcomes []aftermath) experiment.Table {
	t := experiment.Table{Name: "steps", Title: "Where the time goes", Columns: []string{
		"Copies", "Cut at once", "Step", "Cuts", "Ms: min", "Median", "90 %", "Max",
	}}
	for i, b := range blows {
		for step, name := range steps {
			s := statisticsOf(outcomes[i].Steps[step])
			row := []string{strconv.Itoa(b.Copies), strconv.Itoa(b.Cuts), name,
				strconv.Itoa(len(outcomes[i].Steps[step]))}
			for _, ms := range []float64{s.least, s.median, s.p90, s.most} {
				row = append(row, milliseconds(ms))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}
