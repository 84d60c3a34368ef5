package linkstate_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/packet/srv6"
	"sextant/routing/linkstate"
	"sextant/te/protection"
	"sextant/te/topology"
)

func block(t testing.TB) srv6.Block {
	t.Helper()
	b, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// printed reads what a daemon of FRR 8.4.4 has printed.
func printed(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func isis(t testing.TB, database string) linkstate.ISISDatabase {
	t.Helper()
	return linkstate.ISISDatabase{Text: printed(t, database),
		Hostnames: printed(t, "isis-hostname.txt")}
}

func ospf6(t testing.TB) linkstate.OSPF6Database {
	t.Helper()
	return linkstate.OSPF6Database{
		Routers: printed(t, "ospf6-router.json"), Networks: printed(t, "ospf6-network.json"),
		Prefixes: printed(t, "ospf6-intra-prefix.json"),
		External: printed(t, "ospf6-as-external.json"),
	}
}

// The three routers of these databases: r1 and r2 with a double link, r2 and r3 on a LAN, r3
// overloaded in one of them.
func TestISIS(t *testing.T) {
	const lan = "risks [3032376127]"
	for file, want := range map[string]string{
		"isis.txt": `r1 fcbb:bb00:1::/128
r2 fcbb:bb00:2::/128
r3 fcbb:bb00:3::/128 not for transit
r1>r2 weight 11 delay 11 capacity 1410064 risks [] sid :: back 1
r2>r1 weight 12 delay 12 capacity 0 risks [] sid :: back 0
r1>r2 weight 11 delay 11 capacity 0 risks [] sid :: back 3
r2>r1 weight 12 delay 12 capacity 0 risks [] sid :: back 2
r2>r3 weight 12 delay 12 capacity 0 LAN sid :: back 5
r3>r2 weight 67108877 delay 13 capacity 0 LAN sid :: back 4
`,
		"isis-mt.txt": `r1 fcbb:bb00:1::/128
r2 fcbb:bb00:2::/128
r3 fcbb:bb00:3::/128
r1>r2 weight 11 delay 11 capacity 1410064 risks [] sid :: back 1
r2>r1 weight 12 delay 12 capacity 0 risks [] sid :: back 0
r1>r2 weight 11 delay 11 capacity 0 risks [] sid :: back 3
r2>r1 weight 12 delay 12 capacity 0 risks [] sid :: back 2
r2>r3 weight 12 delay 12 capacity 0 LAN sid :: back 5
r3>r2 weight 13 delay 13 capacity 0 LAN sid :: back 4
`,
	} {
		g, ignored, err := linkstate.ISIS("isis", isis(t, file), block(t))
		if err != nil || len(ignored) > 0 {
			t.Fatalf("%s: %v, ignored %q", file, err, ignored)
		}
		if diff := cmp.Diff(strings.ReplaceAll(want, "LAN", lan), dump(g)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// The same network by OSPFv3, where r3 is a stub router and r1 has two locators.
func TestOSPF6(t *testing.T) {
	g, ignored, err := linkstate.OSPF6("ospf6", ospf6(t), block(t))
	if err != nil || len(ignored) > 0 {
		t.Fatalf("%v, ignored %q", err, ignored)
	}
	want := `10.9.9.1 fcbb:bb00:1::/128
10.9.9.2 fcbb:bb00:2::/128
10.9.9.3 fcbb:bb00:3::/128 not for transit
10.9.9.1>10.9.9.2 weight 21 delay 21 capacity 0 risks [] sid :: back 1
10.9.9.2>10.9.9.1 weight 22 delay 22 capacity 0 risks [] sid :: back 0
10.9.9.1>10.9.9.2 weight 21 delay 21 capacity 0 risks [] sid :: back 3
10.9.9.2>10.9.9.1 weight 22 delay 22 capacity 0 risks [] sid :: back 2
10.9.9.2>10.9.9.3 weight 22 delay 22 capacity 0 risks [3934143096] sid :: back 5
10.9.9.3>10.9.9.2 weight 67108887 delay 23 capacity 0 risks [3934143096] sid :: back 4
`
	if diff := cmp.Diff(want, dump(g)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Of two parallel links one has the greatest metric at one end: it is left out, and the other one
// is what it was.
func TestISISGreatestMetric(t *testing.T) {
	db := isis(t, "isis.txt")
	db.Text = []byte(strings.Replace(string(db.Text), "0000.0000.0002.00 (Metric: 11)",
		"0000.0000.0002.00 (Metric: 16777215)", 1))
	g, ignored, err := linkstate.ISIS("isis", db, block(t))
	if err != nil {
		t.Fatal(err)
	}
	want := `r1>r2 weight 11 delay 11 capacity 0 risks [] sid :: back 1
r2>r1 weight 12 delay 12 capacity 0 risks [] sid :: back 0
`
	if got := dump(g); g.Edges() != 4 || !strings.Contains(got, want) {
		t.Errorf("the graph:\n%s", got)
	}
	if diff := cmp.Diff([]string{"link from 0000.0000.0001 to 0000.0000.0002: by its metric, " +
		"16777215, it is not for shortest paths", "link from 0000.0000.0002 to " +
		"0000.0000.0001: the other end does not tell of it"}, ignored); diff != "" {
		t.Error(diff)
	}
}

// A router that has failed stays in the database until what it told is too old, but LANs do not
// list it any more: it is on none.
func TestISISRouterFailedOnLAN(t *testing.T) {
	db := isis(t, "isis.txt")
	lan := "r2.04-00                   51   0x00000001  0x9133    1146    0/0/0\n" +
		"  Extended Reachability: 0000.0000.0002.00 (Metric: 0)\n"
	text := strings.Replace(string(db.Text), lan+
		"  Extended Reachability: 0000.0000.0003.00 (Metric: 0)\n", lan, 1)
	if text == string(db.Text) {
		t.Fatal("the LAN does not list r3")
	}
	db.Text = []byte(text)
	g, ignored, err := linkstate.ISIS("isis", db, block(t))
	if err != nil || g.Edges() != 4 {
		t.Errorf("%v, the graph:\n%s", err, dump(g))
	}
	if diff := cmp.Diff([]string{"link from 0000.0000.0003 to 0000.0000.0002.04: the other end " +
		"does not tell of it"}, ignored); diff != "" {
		t.Error(diff)
	}
}

// The database of ospf6d 3 s after 10.9.9.2 was killed, which is on one LAN with 10.9.9.1 and
// 10.9.9.3, and on another one with 10.9.9.3 and 10.9.9.4.
func TestOSPF6RouterFailedOnLAN(t *testing.T) {
	g, ignored, err := linkstate.OSPF6("ospf6", linkstate.OSPF6Database{
		Routers: printed(t, "ospf6-dead-router.json"), Prefixes: []byte("{}"),
		Networks: printed(t, "ospf6-dead-network.json"), External: []byte("{}")}, block(t))
	if err != nil || len(ignored) != 2 {
		t.Errorf("%v, ignored %q", err, ignored)
	}
	var links []string
	for e := range topology.Edge(g.Edges()) {
		links = append(links, protection.LinkOf(g, e).String())
	}
	slices.Sort(links)
	if diff := cmp.Diff([]string{"10.9.9.1>10.9.9.3", "10.9.9.3>10.9.9.1", "10.9.9.3>10.9.9.4",
		"10.9.9.4>10.9.9.3"}, links); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What can't be told apart or believed is left out, with the reason.
func TestISISDoubts(t *testing.T) {
	db := isis(t, "isis.txt")
	text := strings.ReplaceAll(string(db.Text), "r3.00-00 ", "a-long-hostnam.00-00 ")
	db.Text = []byte(strings.ReplaceAll(text, "fcbb:bb00:2::/48", "fcbb:bb00:1::/48"))
	db.Hostnames = []byte(strings.ReplaceAll(string(db.Hostnames), "r3 ", "a-long-hostname1 ") +
		"2 0000.0000.0007 a-long-hostname2\n")
	g, ignored, err := linkstate.ISIS("isis", db, block(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LSP of a-long-hostnam: not one router",
		"locator fcbb:bb00:1::/48: 2 routers announce it"} {
		if !strings.Contains(strings.Join(ignored, "\n"), want) {
			t.Errorf("ignored %q, and not %s", ignored, want)
		}
	}
	if got := dump(g); g.Edges() != 4 || !strings.HasPrefix(got, "r1 ::/128\nr2 ::/128\n") {
		t.Errorf("the graph:\n%s", got)
	}
	lifetime := regexp.MustCompile(`(r2\.00-00 .*) (\d+)(    0/0/0)`)
	db.Text = lifetime.ReplaceAll(isis(t, "isis.txt").Text, []byte("$1 ($2)$3"))
	if g, _, err = linkstate.ISIS("isis", db, block(t)); err != nil || g.Edges() != 0 {
		t.Errorf("with r2's LSP withdrawn: %v, %d edges", err, g.Edges())
	}
}

// daemon answers on a socket as FRR's do.
func daemon(t *testing.T, dir, name string, answer func(command string) string) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(dir, name+".vty"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			command := make([]byte, 200)
			n, _ := conn.Read(command)
			_, _ = conn.Write([]byte(answer(strings.TrimRight(string(command[:n]), "\x00"))))
			conn.Close()
		}
	}()
}

// Databases are asked for on the daemons' sockets; what these refuse is said.
func TestAskingFRR(t *testing.T) {
	f := linkstate.FRR{Directory: t.TempDir(), Block: block(t)}
	if _, _, err := f.ISIS(context.Background()); err == nil || !strings.Contains(err.Error(),
		"does it run") {
		t.Errorf("nobody answers: %v", err)
	}
	daemon(t, f.Directory, "isisd", func(command string) string {
		file := map[string]string{"show isis database detail": "isis.txt",
			"show isis hostname": "isis-hostname.txt"}[command]
		return string(printed(t, file)) + "\x00\x00\x00\x00"
	})
	if g, _, err := f.ISIS(context.Background()); err != nil || g.Edges() != 6 {
		t.Errorf("%v: %d edges", err, g.Edges())
	}
	daemon(t, f.Directory, "ospf6d",
		func(string) string { return "% Unknown command\n\x00\x00\x00\x02" })
	if _, _, err := f.OSPF6(context.Background()); err == nil || !strings.Contains(err.Error(),
		"status 2: % Unknown command") {
		t.Errorf("refused: %v", err)
	}
}

// Whatever is printed, a graph comes of it, or an error.
func FuzzISIS(f *testing.F) {
	for _, name := range []string{"isis.txt", "isis-mt.txt"} {
		db := isis(f, name)
		f.Add(db.Text, db.Hostnames)
	}
	b := block(f)
	f.Fuzz(func(t *testing.T, text, hostnames []byte) {
		g, _, err := linkstate.ISIS("isis",
			linkstate.ISISDatabase{Text: text, Hostnames: hostnames}, b)
		if err == nil && g == nil {
			t.Error("neither a graph nor an error")
		}
	})
}

func FuzzOSPF6(f *testing.F) {
	db := ospf6(f)
	f.Add(db.Routers, db.Networks, db.Prefixes, db.External)
	b := block(f)
	f.Fuzz(func(t *testing.T, routers, networks, prefixes, external []byte) {
		g, _, err := linkstate.OSPF6("ospf6", linkstate.OSPF6Database{Routers: routers,
			Networks: networks, Prefixes: prefixes, External: external}, b)
		if err == nil && g == nil {
			t.Error("neither a graph nor an error")
		}
	})
}
