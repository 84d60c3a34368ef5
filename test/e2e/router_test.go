package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/datapath/packettest"
	"sextant/lab/loadgen"
)

// routed is a lab in which the kernel of edge1 forwards to four web servers by routes alone.
type routed struct{ *agents }

// routingPatience is for daemons that try again only after ten seconds.
const routingPatience = 2 * time.Minute

const routedURL = "http://[2001:db8:80::80]/?ms=0&bytes=250000"

// upRouted brings the lab up, with routes from a source.
func upRouted(t *testing.T, source, table string, buckets int) *routed {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile(filepath.Join("testdata", "router.yaml"))
	must(t, err)
	fpm, bgp := "", ""
	if source == "fpm" {
		fpm = `          fpm: {listen: "[::1]:2620", settle: 30s}` // daemons try again after ten
		bgp = `        bgp: {asn: 64512, routerID: "192.0.2.{i}", neighbors: [{address: "fd00:5e::e1", asn: 64512, families: [vpnv6]}]}`
	}
	words := strings.NewReplacer("FPM\n", fpm+"\n", "BGP\n", bgp+"\n", "SOURCE", source, "TABLE",
		table, "BUCKETS", fmt.Sprint(buckets))
	return &routed{upText(t, "router.yaml", words.Replace(string(text)))}
}

// webSID is the SID of a web server.
func webSID(n int) string { return fmt.Sprintf("fcbb:bb00:1%x::", n) }

// route makes the next hops of the VIP in table 10 those of these servers; the group is the same
// object all the time.
func (r *routed) route(servers ...int) {
	r.t.Helper()
	var ids []string
	for _, n := range servers {
		id := fmt.Sprint(n)
		ids = append(ids, id)
		r.on("edge1", "ip", "-6", "nexthop", "replace", "id", id, "encap", "seg6", "mode", "encap",
			"segs", webSID(n), "dev", "eth0")
	}
	r.on("edge1", "ip", "nexthop", "replace", "id", "20", "group", strings.Join(ids, "/"))
	r.on("edge1", "ip", "-6", "route", "replace", "2001:db8:80::80", "nhid", "20", "table", "10")
}

// await waits until the VIP's next hops and their shadow are those of these servers.
func (r *routed) await(servers, shadow []int) {
	r.t.Helper()
	var last []api.Route
	for end := time.Now().Add(routingPatience); time.Now().Before(end); time.Sleep(
		20 * time.Millisecond) {
		routes, err := r.client("edge1").Routes(r.t.Context())
		must(r.t, err)
		if last = routes; len(routes) == 1 && slices.Equal(serversOf(routes[0].NextHops),
			servers) && slices.Equal(serversOf(routes[0].Shadow), shadow) {
			return
		}
	}
	log, _ := os.ReadFile(r.lab.Log("edge1", "sextant"))
	r.t.Fatalf("the next hops are never %v with shadow %v; they are %+v\n%s", servers, shadow, last,
		log)
}

func serversOf(hops []api.RouteHop) (list []int) {
	for _, h := range hops {
		for n := range 8 {
			if len(h.Segments) == 1 && h.Segments[0].String() == webSID(n) {
				list = append(list, n)
			}
		}
	}
	slices.Sort(list)
	return list
}

// downloaders is how many downloads run at a time, and downloadPatience how long one may take.
const (
	downloaders      = 48
	downloadPatience = 10 * time.Second
)

// ended is a line of a load, and when it was read.
type ended struct {
	loadgen.Line
	at time.Time
}

// download runs downloads of a second or two, calls change in their midst, lets those that are open
// after it come to their end, and returns what came of all.
func (r *routed) download(change func()) *loadgen.DownloadResult {
	r.t.Helper()
	var problems bytes.Buffer
	cmd := exec.Command(os.Args[0], "loadgen", routedURL, "--workers", fmt.Sprint(downloaders),
		"--sources", "2001:db8:c::/112", "--duration", "1h",
		"--deadline", downloadPatience.String())
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	must(r.t, err)
	inside(r.t, r.lab, "client", cmd.Start)
	defer cmd.Process.Kill()
	lines := make(chan ended, 1<<16)
	go func() {
		defer close(lines)
		for decoder := json.NewDecoder(out); ; {
			var line loadgen.Line
			if decoder.Decode(&line) != nil {
				return
			}
			lines <- ended{line, time.Now()}
		}
	}()
	for range downloaders {
		<-lines
	}
	change()
	awaitOpenDownloads(lines)
	must(r.t, cmd.Process.Signal(syscall.SIGTERM))
	var result *loadgen.DownloadResult
	for line := range lines {
		result = line.Result
	}
	if err := cmd.Wait(); err != nil || result == nil {
		r.t.Fatalf("load: %v\n%s", err, &problems)
	}
	return result
}

// awaitOpenDownloads waits until the downloads that are open now have come to their end.
func awaitOpenDownloads(lines <-chan ended) {
	now, tooLate := time.Now(), time.After(2*downloadPatience)
	for open := downloaders; open > 0; {
		select {
		case line, ok := <-lines:
			if !ok {
				return
			}
			took := time.Duration(line.Fetch.Ms * float64(time.Millisecond))
			if line.at.After(now) && line.at.Add(-took).Before(now) {
				open--
			}
		case <-tooLate: // a line that was read late can make a download seem a new one
			return
		}
	}
}

// strays counts packets that the servers sent back.
func (r *routed) strays() (sum uint64) {
	r.t.Helper()
	for n := 1; n <= 4; n++ {
		counters, err := r.client(fmt.Sprintf("web%d", n)).Counters(r.t.Context())
		must(r.t, err)
		for _, c := range counters {
			sum += c.ForwardedPackets()
		}
	}
	return sum
}

// A server's next hop leaves under downloads, at a router whose kernel forwards alone: connections
// that others get now go back and to the server that has them, by plain groups and by buckets.
// Without the shadow, many are lost.
func TestKernelKeepsConnections(t *testing.T) {
	for _, c := range []struct {
		name     string
		buckets  int
		shadowed bool
	}{{"plain", 0, true}, {"buckets", 128, true}, {"without the shadow", 0, false}} {
		t.Run(c.name, func(t *testing.T) {
			// On a busy machine the change can come when downloads are at their end.
			tries, lost := 4, false
			if c.shadowed {
				tries = 1
			}
			for try := 1; try <= tries && !lost; try++ {
				t.Run(fmt.Sprintf("try %d", try), func(t *testing.T) {
					lost = leaveUnderDownloads(t, c.buckets, c.shadowed)
				})
			}
			if lost == c.shadowed {
				t.Errorf("downloads failed: %v", lost)
			}
		})
	}
}

// leaveUnderDownloads takes a server's next hop away under downloads, and reports whether some
// failed.
func leaveUnderDownloads(t *testing.T, buckets int, shadowed bool) (lost bool) {
	t.Helper()
	r := upRouted(t, "kernel", "10", buckets)
	r.route(1, 2, 3, 4)
	r.await([]int{1, 2, 3, 4}, nil)
	if !shadowed {
		r.on("edge1", "ip", "-6", "route", "replace", "unreachable", "fcbb:bb00:d0::/128",
			"metric", "1")
	}
	result := r.download(func() {
		r.route(1, 3, 4)
		r.await([]int{1, 3, 4}, []int{1, 2, 3, 4})
	})
	strays := r.strays()
	t.Logf("%d downloads, %d failed, %d strays: %v", result.Done, result.Failed, strays,
		result.FirstErrors)
	if strays == 0 {
		t.Error("no packet went astray: the test shows nothing")
	}
	return result.Failed > 0
}

// A packet of a connection that nobody has goes back and forth between servers and shadow until its
// own hop limit is used up: of its hops, the router's kernel counts none.
func TestKernelStraysEnd(t *testing.T) {
	r := upRouted(t, "kernel", "10", 0)
	r.route(1, 2)
	r.await([]int{1, 2}, nil)
	r.route(1)
	r.await([]int{1}, []int{1, 2})
	packet := packettest.Web6("A")
	packet.HopLimit = 60
	sendRaw(t, r.lab, "client", packet.Bytes(t))
	const still = 25 // times that it is counted and has not been sent back since
	end := time.Now().Add(routingPatience)
	for last, same := uint64(0), 0; same < still; time.Sleep(20 * time.Millisecond) {
		switch strays := r.strays(); {
		case strays >= uint64(packet.HopLimit):
			t.Fatalf("a packet with a hop limit of %d was sent back %d times", packet.HopLimit,
				strays)
		case time.Now().After(end):
			t.Fatalf("the packet was sent back %d times; want more than once, and an end", strays)
		case strays < 2 || strays != last:
			last, same = strays, 0
		default:
			same++
		}
	}
}
