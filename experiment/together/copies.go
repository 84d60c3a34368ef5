package together

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
	"sextant/linux"
)

var lossyPaths = experiment.Experiment{
	Name:  "together-c",
	Title: "Short requests over paths that lose one packet in a hundred", Source: "-",
	Shows: "TCP connections with a request of one packet and an answer of 1 to 10 packets, over " +
		"two paths from the edge to two servers (examples/copies.yaml), which lose 1 % of the " +
		"packets on their way there: without loss, with it, with copies of SYNs over both " +
		"paths, and with copies of SYNs and requests. The mean and the tail of how long they " +
		"take, and the octets of all packets on the links of client and edge.",
	Paper: experiment.Ours, Needs: []string{"root"}, Lasts: "3 min", Run: runCopies,
}

const (
	webAddress    = "[2001:db8:80::80]:80"
	requestBytes  = 128
	answerBytes   = 1428 // of a packet: what an MTU of 1,500 leaves of TCP with timestamps
	answersMost   = 10   // packets
	requestsAtOne = 32   // moment
	tailShare     = 0.99
)

// setting is what one run of the experiment has.
type setting struct {
	name   string
	loss   string
	copies string
}

var settings = []setting{
	{"no loss", "0%", "[]"},
	{"no loss, copies of SYNs and requests", "0%", "[syn, data]"},
	{"loss", "1%", "[]"},
	{"loss, copies of SYNs", "1%", "[syn]"},
	{"loss, copies of SYNs and requests", "1%", "[syn, data]"},
}

// took is what a run found.
type took struct {
	Requests int
	Failed   int
	MeanMs   float64
	MedianMs float64
	TailMs   float64 // that one request in a hundred takes longer than
	MostMs   float64
	Octets   uint64 // sent by client and edge, and received by the client
}

func runCopies(ctx context.Context, r *experiment.Recorder) error {
	n := r.Requests(5_000)
	found := make([]took, len(settings))
	for i, s := range settings {
		var err error
		found[i], err = experiment.Part(r, fmt.Sprintf("copies-%d", i), func() (took, error) {
			r.Progress("%s", s.name)
			return oneSetting(ctx, s, n)
		})
		if err != nil {
			return err
		}
	}
	reportCopies(r, found)
	return nil
}

// oneSetting brings the lab up with a loss and copies, and makes the requests.
func oneSetting(ctx context.Context, s setting, n int) (found took, err error) {
	text := string(examples.Copies)
	for old, fresh := range map[string]string{"loss: 1%": "loss: " + s.loss,
		"copies: [syn, data]": "copies: " + s.copies} {
		if !strings.Contains(text, old) {
			return found, fmt.Errorf("the lab copies has no %q", old)
		}
		text = strings.ReplaceAll(text, old, fresh)
	}
	err = experiment.InExample(ctx, "together-c", []byte(text), nil, lab.Options{},
		func(_ context.Context, a *experiment.Arena) error {
			end, err := a.Serve(webAddress, answer, "web1", "web2")
			if err != nil {
				return err
			}
			defer end()
			before, err := octets(a)
			if err != nil {
				return err
			}
			found = summary(request(a, n))
			after, err := octets(a)
			found.Octets = after - before
			return err
		})
	return found, err
}

// answer answers one request, whose first octet says with how many packets.
func answer(_ string, conn net.Conn) {
	request := make([]byte, requestBytes)
	if _, err := io.ReadFull(conn, request); err != nil {
		return
	}
	_, _ = conn.Write(make([]byte, int(request[0])*answerBytes)) // else the client sees it
	_, _ = conn.Read(request)                                    // until the client closes
}

// request makes requests, a fixed number at a time, and returns how long each took, answerTime for
// one that failed.
func request(a *experiment.Arena, n int) []time.Duration {
	all := make([]time.Duration, n)
	inLanes(requestsAtOne, n, func(i int) {
		packets := 1 + rand.New(rand.NewPCG(21, uint64(i))).IntN(answersMost)
		all[i] = ask(a, packets)
	})
	return all
}

// inLanes does so many things, a fixed number at a time.
func inLanes(lanes, n int, do func(i int)) {
	_ = experiment.SideBySide(context.Background(), lanes, n, // nothing of it fails
		func(_ context.Context, i int) error { do(i); return nil }, nil)
}

// ask makes one request, and returns how long it took from the SYN to the last octet.
func ask(a *experiment.Arena, packets int) time.Duration {
	var conn net.Conn
	begun := time.Now()
	err := a.Spaces["client"].Do(func() (err error) {
		dialer := net.Dialer{Timeout: answerTime, KeepAlive: -1}
		conn, err = dialer.Dial("tcp", webAddress)
		return err
	})
	if err != nil {
		return answerTime
	}
	defer conn.Close()
	request := make([]byte, requestBytes)
	request[0] = byte(packets)
	_ = conn.SetDeadline(begun.Add(answerTime)) // else the next call fails
	if _, err = conn.Write(request); err == nil {
		_, err = io.ReadFull(conn, make([]byte, packets*answerBytes))
	}
	if err != nil {
		return answerTime
	}
	return time.Since(begun)
}

// octets are those of all packets that client and edge have sent and the client has received.
func octets(a *experiment.Arena) (sum uint64, err error) {
	count := func(node, port string, received bool) error {
		return a.Spaces[node].Do(func() error {
			link, err := netlink.LinkByName(port)
			if err != nil {
				return linux.Failed(err, "read the counters of %s", port)
			}
			sum += link.Attrs().Statistics.TxBytes
			if received {
				sum += link.Attrs().Statistics.RxBytes
			}
			return nil
		})
	}
	return sum, errors.Join(count("client", "edge", false), count("client", "out", true),
		count("edge", "left", false), count("edge", "right", false))
}

// summary is the mean and the tail of how long requests took.
func summary(all []time.Duration) (t took) {
	slices.Sort(all)
	for _, one := range all {
		t.Requests++
		if one >= answerTime {
			t.Failed++
		}
		t.MeanMs += one.Seconds() * 1000 / float64(len(all))
	}
	at := func(share float64) float64 {
		return all[int(math.Ceil(share*float64(len(all))))-1].Seconds() * 1000
	}
	t.MedianMs, t.TailMs, t.MostMs = at(0.5), at(tailShare), at(1)
	return t
}

// reportCopies writes what the settings found.
func reportCopies(r *experiment.Recorder, found []took) {
	t := experiment.Table{Name: "settings", Title: "How long requests took, and what they cost",
		Columns: []string{"setting", "requests", "failed", "mean ms", "median ms", "99 % ms",
			"slowest ms", "octets a request"}}
	for i, f := range found {
		t.Add(settings[i].name, f.Requests, f.Failed, fmt.Sprintf("%.1f", f.MeanMs),
			fmt.Sprintf("%.1f", f.MedianMs), fmt.Sprintf("%.1f", f.TailMs),
			fmt.Sprintf("%.0f", f.MostMs), f.Octets/uint64(max(f.Requests, 1)))
	}
	r.Table(t)
	free, lossy, copied := found[0], found[2], found[4]
	r.Compare(experiment.Comparison{What: "99 % of short requests, copies beside no loss",
		Source: "-", Ours: fmt.Sprintf("%+.1f %% (without copies %+.0f %%)",
			100*(copied.TailMs/free.TailMs-1), 100*(lossy.TailMs/free.TailMs-1)),
		Says: "within 10 %"})
	r.Compare(experiment.Comparison{What: "octets of copies", Source: "-",
		Ours: fmt.Sprintf("%+.1f %% of those without copies or loss",
			100*(float64(found[1].Octets)/float64(max(free.Octets, 1))-1)), Says: "at most 5 %"})
	r.Note("Packets on their way from the servers to the client lose nothing: they do not go by " +
		"the edge, which could not copy them. A lost SYN costs 1 s (RFC 6298), a lost request " +
		"some 200 ms.")
}
