package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, go test -update rewrites it):\n%s", file, diff)
	}
}

// sessions are command lines that follow one another on one machine. Expected
// output is in testdata/NAME.txt. "$ VARIABLE=value" sets the environment,
// "< text" is what somebody at a terminal types.
var sessions = []struct {
	name  string
	node  string
	busy  bool
	lines []string
}{
	{"service-list", fakeNode, false, []string{
		"service list", "service list -o wide", "service list -o json", "service list -o yaml",
		"service list -o name",
		"service list --role host", "service list --role edge -o name",
	}},
	{"service-list-some", fakeNode, false, []string{
		"service list web", "service list w* *s -o name", "service list none*",
		"service list none* -o json", "service list w* none", "service list api --role edge",
		"service list [a-", "service list --sort packets -o name",
		"service list --sort refused -o name", "service list --sort endpoint",
		"service list --limit 1 --sort packets", "service list --limit 4 -o name",
		"service list --limit 1 -q", "service list --limit 1 -o name", "service list --limit -1",
		"service list web d* --limit 1 -o json", "service list --sum", "service list --sum -o wide",
		"service list --sum -o json", "service list --sum --role edge -o yaml",
		"service list --sum --role host a* -o wide", "service list --sum none* -o yaml",
		"service list --sum --limit 2 -o name", "service list --sum --limit 2 --sort packets",
	}},
	{"flow-trace", fakeNode, false, []string{
		"flow trace 203.0.113.7:40000 198.51.100.80:80",
		"flow trace [2001:db8::7]:40000 [2001:db8:80::80]:80 -o json",
		"flow trace 203.0.113.7 198.51.100.80:80", "flow trace 203.0.113.7:1 [2001:db8:80::80]:80",
		"flow trace 203.0.113.7:1 192.0.2.1:1 --protocol sctp",
		"flow trace 203.0.113.7:1 198.51.100.80:80 -o name", "flow",
	}},
	{"explain", fakeNode, false, []string{
		"explain 203.0.113.7:40000 198.51.100.80:80", "explain 203.0.113.7:40000 " +
			"198.51.100.80:80 -o wide", "explain -r testdata/two.pcap",
		"explain -r testdata/two.pcap -o wide --limit 1",
		"explain -r testdata/two.pcap -o json --limit 1", "explain", "explain 203.0.113.7:40000",
		"explain -r testdata/none.pcap", "explain -r testdata/bad.yaml",
		"explain 203.0.113.7:40000 198.51.100.80:80 -r testdata/two.pcap",
		"explain --role router 203.0.113.7:40000 198.51.100.80:80",
	}},
	{"explain-strays", fakeBeside, false, []string{
		"explain 203.0.113.7:40000 198.51.100.80:80", "explain -r testdata/two.pcap",
		"explain --role strays 203.0.113.7:40000 198.51.100.80:80 -o json",
	}},
	{"explain-egress", fakeEgress, false, []string{
		"explain [2001:db8:a::1]:4000 [2001:db8:b::1]:5005",
		"explain --role merge [2001:db8:a::1]:4000 [2001:db8:b::1]:5005 -o json",
	}},
	{"capture", fakeNode, false, []string{
		"capture --count 2", "capture --count 1 -o json -q", "capture",
		"capture --verdict drop --count 1",
		"capture --service web --source 203.0.113.7:0 --count 1 -q",
		"capture --verdict maybe", "capture --vip 203.0.113.7:1", "capture --source 203.0.113.7",
		"capture --protocol sctp", "capture -o yaml",
		"capture --service wbe", "capture --service dns --role host -w -",
	}},
	{"ipvsadm", fakeEdge, false, []string{
		"ipvsadm -A -t 192.0.2.80:80 -s wlc", "ipvsadm -A -u [2001:db8::53]:53 -s mh -p 300",
		"ipvsadm -E -t 192.0.2.80:80 -s rr", "ipvsadm -D -t 192.0.2.80:80",
		"ipvsadm -a -t 192.0.2.80:80 -r fcbb:bb00:1:: -g -w 2", "ipvsadm -e -t 192.0.2.80:80 -r " +
			"fcbb:bb00:1:: -w 0", "ipvsadm -d -t 192.0.2.80:80 -r fcbb:bb00:1::",
		"ipvsadm -Ln", "ipvsadm -L -n --rate", "ipvsadm -C", "ipvsadm -S -n", "ipvsadm -Z",
		"ipvsadm -a -t 192.0.2.80:80 -r 10.0.0.1:80", "ipvsadm -a -t 192.0.2.80:80", "ipvsadm -A",
		"ipvsadm -A -D -t 192.0.2.80:80", "ipvsadm -A -f 1", "ipvsadm -Q",
		"ipvsadm --nonsense", "ipvsadm add", "ipvsadm -A -t web", "ipvsadm -a -t 192.0.2.80:80 " +
			"-r fcbb:bb00:1:: -w many", "ipvsadm -t 192.0.2.80:80", "ipvsadm -A -t",
	}},
	{"map-dump", fakeNode, false, []string{
		"map dump services", "map dump services --limit 1 -o json", "map dump drops",
		"map dump drops -o name", "map dump nothing", "map dump", "map dump services --limit -1",
	}},
	{"doctor", fakeNode, false, []string{
		"doctor", "doctor -o json --quick", "doctor --node testdata/good.yaml --bpf " +
			"/sys/fs/bpf/x -o name", "doctor --node testdata/bad.yaml",
		"doctor --socket /nonexistent",
		"doctor --socket /nonexistent --node testdata/good.yaml",
		"support-bundle --socket /nonexistent",
	}},
	{"bgp", fakeNode, false, []string{
		"bgp peers", "bgp peers -o wide", "bgp peers -o json", "bgp routes", "bgp routes -o wide",
		"bgp routes -o yaml", "bgp routes -o name", "bgp",
	}},
	{"bgp-announce", fakeNode + "bgp: {asn: 64512, routerID: 192.0.2.1, neighbors: [{address: " +
		"192.0.2.2, asn: 64512}]}\n", false, []string{
		"bgp announce draining", "bgp announce draining", "bgp announce nothing -o json",
		"bgp announce down", "bgp announce",
	}},
	{"subflows", fakeNode, false, []string{
		"path subflows", "path subflows -o wide", "path subflows -o json", "path subflows -o name",
		"path subflows x"}},
	{"next-hops", fakeNode, false, []string{
		"path next-hops", "path next-hops 10.3.7.9 -o wide", "path next-hops 10.3.1.3 -o json",
		"path next-hops 192.0.2.1", "path next-hops here", "path next-hops -o name",
	}},
	{"route", fakeNode, false, []string{
		"route list", "route list blue -o wide", "route list red -o json", "route list green",
		"route list -o name", "route sources", "route sources -o wide",
		"route sources -o yaml", "route",
	}},
	{"bgp-none", fakeEdge, false, []string{"bgp announce up", "bgp peers", "bgp routes -o json"}},
	{"service-list-empty", fakeEdge, false, []string{"service list", "service list -o json",
		"service list -o name"}},
	{"service-show", fakeNode, false, []string{
		"service show web", "service show api", "service show web -o json", "service show nobody",
		"service show",
	}},
	{"service-add", fakeNode, false, []string{
		"service add tls --role edge --vip 2001:db8:80::80 --port 443 --candidates 3",
		"service add tls --role edge --vip 2001:db8:80::80 --port 443",
		"service add tls2 --role edge --vip 2001:db8:80::80 --port 443",
		"service add tls2 --role edge --vip 2001:db8:80::80 --port 444 --candidates 9",
		"service add new --role host --vip 2001:db8:80::82 --port any --policy static " +
			"--threshold 4 -o json",
		"service add new2 --role host --vip 2001:db8:80::83 --port 80 --policy static",
		"service add new2 --vip 2001:db8:80::83 --port 80",
		"service add new2 --role edge --vip 2001:db8:80::83/64 --port 80",
		"service add new2 --role edge --vip 2001:db8:80::83 --port 0",
		"service add new2 --role host --vip 2001:db8:80::83 --port 1 --low 2",
		"service add",
		"service add a",
		"service add a b",
		"service add a --vipp 1",
	}},
	{"service-add-on-edge", fakeEdge, false, []string{
		"service add web --vip 192.0.2.1 --port 80",
		"service add web2 --vip 192.0.2.1 --port 81 -q",
		"service add web3 --role host --vip 192.0.2.1 --port 80",
		"service list -o name",
	}},
	{"service-set", fakeNode, false, []string{
		"service set web --candidates 4 --role edge", "service set web --role edge",
		"service set api --role host --window 100 --high 0.75",
		"service set nobody --role edge --candidates 1",
		"service set web --role edge --new-connections 1000,50",
		"service set web --role edge --new-connections none",
		"service set web --role edge --new-connections fast",
		"service set api --role host --policy static",
	}},
	{"service-delete", fakeNode, false, []string{
		"service delete dns --role edge", "service delete dns --role edge",
		"service delete rest --role host -o json", "service delete api",
	}},
	{"service-delete-busy", fakeNode, true, []string{
		"service delete web --role edge",
		"< n", "service delete web --role edge",
		"< yes", "service delete web --role edge",
		"service delete api --role host --yes",
	}},
	{"service-delete-not-a-terminal", fakeNode, true, []string{"service delete api --role host"}},
	{"backend-list", fakeNode, false, []string{
		"backend list", "backend list web -o wide", "backend list web -o json",
		"backend list web -o name", "backend list dns",
		"backend list nobody",
	}},
	{"backend-change", fakeNode, false, []string{
		"backend add web web4 --sid fcbb:bb00:4:: --weight 3",
		"backend add web web4 --sid fcbb:bb00:4::",
		"backend add web web5 --sid fcbb:bb00:4::",
		"backend add web web5",
		"backend add web web5 --sid 10.0.0.1",
		"backend add nobody web5 --sid fcbb:bb00:5::",
		"backend set web web4 --weight 4 --state maintenance",
		"backend set web web4 --weight 70000",
		"backend set web web4",
		"backend set web web9 --weight 1",
		"backend drain web web1", "backend drain web web1", "backend undrain web web1",
		"backend delete web web1", "backend delete web web1", "backend delete web",
	}},
	{"backend-delete-busy", fakeNode, true, []string{
		"backend delete web web1", "backend delete web web1 --yes", "< y",
		"backend delete web web2",
	}},
	{"status", fakeNode, false, []string{"status", "status -o wide", "status -o json",
		"status -o name",
		"status --brief"}},
	{"sid-map-config", fakeNode, false, []string{
		"sid list", "sid list -o json", "map list", "map list -o yaml", "config show",
		"config show --secrets -o json",
	}},
	{"check", fakeNode, false, []string{
		"check -f testdata/good.yaml", "check -f testdata/good.yaml -q -o json",
		"check -f testdata/bad.yaml",
		"check -f testdata/none.yaml", "check", "check -f testdata/good.yaml -o name -q",
	}},
	{"convert", fakeEdge, false, []string{
		"convert ipvsadm testdata/ipvsadm.rules --map testdata/servers.sids",
		"convert ipvsadm testdata/ipvsadm.rules --map testdata/servers.sids -q --block x",
		"convert ipvsadm testdata/ipvsadm.rules", "convert haproxy testdata/ipvsadm.rules " +
			"--map testdata/servers.sids", "convert keepalived testdata/none --map testdata/none",
		"convert nginx x",
	}},
	{"config-explain", fakeNode, false, []string{
		"config explain", "config explain edge.services.maxBackends",
		"config explain edge.services.backends -o wide", "config explain edge.servces",
		"config explain host.services.accept.policy -o json", "config explain edge -o name",
	}},
	{"config-history", fakeNode, false, []string{
		"backend set web web1 --weight 3", "config history", "config history -o wide",
		"config history -o json", "config history 7", "config history x",
		"config rollback --dry-run",
		"config rollback", "config history -o name", "apply -f testdata/good.yaml --confirm 90s",
		"apply -f testdata/good.yaml --confirm 90s --dry-run", "config confirm", "config confirm",
		"backend drain web web1", "backend drain web web2", "diff -f testdata/bad.yaml -q",
		"diff -f testdata/none.yaml", "--version", "-V -o name",
	}},
	{"diff-apply", fakeNode, false, []string{
		"diff -f testdata/good.yaml", "apply -f testdata/good.yaml --dry-run",
		"diff -f testdata/good.yaml -o json",
		"apply -f testdata/good.yaml --dry-run -q", "apply -f testdata/good.yaml -o name",
		"diff -f testdata/good.yaml", "apply -f testdata/good.yaml", "apply -f testdata/bad.yaml",
		"apply -f testdata/other-socket.yaml",
	}},
	{"usage", fakeNode, false, []string{
		"", "service", "service lst", "servce", "nonsense", "drain web b1",
		"add", "service drain", "backend show", "status -o xml", "status --color pink",
		"status extra", "monitor -o yaml",
		"$ SEXTANT_OUTPUT=name", "status", "status -o wide --brief", "$ SEXTANT_OUTPUT=xml",
		"status",
		"$ SEXTANT_OUTPUT=", "$ SEXTANT_TIMEOUT=soon", "status", "$ SEXTANT_TIMEOUT=",
		"completion tcsh", "version -o name",
	}},
	{"unknown", fakeNode, false, []string{
		"reload", "validate -f node.yaml", "stop", "get services", "services --role edge",
		"list services", "remove service web", "Statsu", "foo", "-f node.yaml foo",
		"backend remove web web1", "service rm web", "lab remove", "context del", "map rm x",
		"service create web", "service ls --sort packets", "service get web", "backend describe",
		"config check", "lab status", "service delte web", "service --sort packets",
		"help servce", "help foo", "help service lst", "foo --help", "service lst --help",
		"help help",
	}},
	{"agent", fakeNode, false, []string{
		"agent -f testdata/good.yaml", "agent -f testdata/good.yaml --bpf /sys/fs/bpf/x -v",
		"agent -f testdata/bad.yaml",
		"agent", "agent -f testdata/none.yaml", "agent -f testdata/good.yaml --log-format csv",
		"unload", "unload -f testdata/good.yaml", "unload --bpf /sys/fs/bpf/x",
		"unload --bpf /sys/fs/bpf/x --socket /nonexistent", "demo",
	}},
	{"try", fakeNode, false, []string{
		"lab", "lab up testdata/none.yaml", "lab exec no-such-lab", "lab examples",
		"lab examples nonsense", "load http://[::1]/", "loadgen http://[::1]/",
		"loadgen http://[::1]/ --rate 1 --workers 1", "loadgen http://[::1]/ --rate 1 --sources x",
		"loadgen", "emulate",
	}},
}

func TestSessions(t *testing.T) {
	for _, s := range sessions {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t, s.node)
			w.agent.busy = s.busy
			w.script(s.name, s.lines)
		})
	}
}

// script types lines, and compares all that came of it with the golden file of the name.
func (w *world) script(name string, lines []string) {
	w.t.Helper()
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(w.line(line))
	}
	golden(w.t, name, text.String())
}

func (w *world) line(line string) string {
	if typed, ok := strings.CutPrefix(line, "< "); ok {
		w.interactive, w.stdin = true, typed+"\n"
		return line + "\n"
	}
	if setting, ok := strings.CutPrefix(line, "$ "); ok {
		name, value, _ := strings.Cut(setting, "=")
		w.environ[name] = value
		return line + "\n"
	}
	out := w.run(strings.Fields(line)...)
	w.interactive, w.stdin = false, ""
	return out
}

func TestStandardInput(t *testing.T) {
	w := newWorld(t, fakeNode)
	w.stdin = strings.Replace(fakeNode, "weight: 2", "weight: 5", 1)
	got := w.run("diff", "-f", "-")
	w.stdin = "node: [a"
	golden(t, "stdin", got+w.run("apply", "-f", "-"))
}

func TestColours(t *testing.T) {
	w := newWorld(t, fakeNode)
	w.terminal = true
	coloured := w.run("backend", "drain", "web", "web1")
	w.environ["NO_COLOR"] = "1"
	plain := w.run("backend", "undrain", "web", "web1")
	always := w.run("backend", "delete", "web", "web1", "--color", "always")
	if !strings.Contains(coloured, "\x1b[33m~ service") || strings.Contains(plain, "\x1b") ||
		!strings.Contains(always,
			"\x1b[31m- service") {
		t.Errorf("colours:\n%s%s%s", coloured, plain, always)
	}
}

func TestUnreachable(t *testing.T) {
	w := newWorld(t, fakeNode)
	w.environ["SEXTANT_SOCKET"] = filepath.Join(t.TempDir(), "none")
	got := strings.ReplaceAll(w.run("status"), w.environ["SEXTANT_SOCKET"], "SOCKET")
	const want = "$ sextant status\n[stderr]\nsextant: status: the agent is not reachable at " +
		"SOCKET" +
		" (connect: no such file or directory); start it with: sextant agent -f FILE\n[exit 5]\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	w.environ["SEXTANT_SOCKET"] = w.socket
	if got := w.run("status", "--timeout", "1ns"); !strings.Contains(got,
		"no answer at SOCKET in time; raise --timeout") ||
		!strings.Contains(got, "[exit 5]") {
		t.Errorf("got %s", got)
	}
}

// Who guesses that a role is a command is told of the one that shows it, and who names a file that
// is not there of what would do.
func TestGuesses(t *testing.T) {
	w := newWorld(t, fakeNode)
	for _, guess := range []string{"flowlets", "flowlet", "edge", "headend"} {
		if got := w.run(guess, "list"); !strings.Contains(got, "status?; see") {
			t.Errorf("got %s", got)
		}
	}
	if got := w.run("sim", "packet", "none.yaml"); !strings.Contains(got,
		"read none.yaml: no such file or directory; name a file that this user can read") {
		t.Errorf("got %s", got)
	}
}

func TestCompletionOfNames(t *testing.T) {
	w := newWorld(t, fakeNode)
	var text strings.Builder
	for _, line := range []string{
		"__complete service show w", "__complete backend drain web ", "__complete backend drain ",
		"__complete service add x --policy ",
		"__complete service show web ", "__complete lab up ", "__complete service list web ",
		"__complete service list --sort ",
	} {
		words := strings.Split(line, " ")
		text.WriteString(w.run(words...))
	}
	w.environ["SEXTANT_SOCKET"] = "/nonexistent"
	text.WriteString(w.run("__complete", "service", "show", ""))
	golden(t, "completion", text.String())
}
