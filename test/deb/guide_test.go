//go:build packaging

package deb_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const guide = "../../docs/tutorial/guide.md"

// step is a command of the guide with the answer that it shows.
type step struct {
	line    int
	who     string // a machine, or web* for all of these
	command string
	answer  []string // lines; nil: nothing is shown
}

// The guide is typed, from nothing to a draining server, on machines that are cabled as its picture
// says.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(string(text))
	if len(steps) < 40 {
		t.Fatalf("%d commands in %s; the test does not find them any more", len(steps), guide)
	}
	names := []string{"client", "router", "edge", "web1", "web2", "web3"}
	machines := boot(t, names...)
	router := machines["router"]
	for i, name := range names {
		if name == "router" {
			continue
		}
		port := "eth0"
		if name != "client" {
			port = fmt.Sprintf("eth%d", i-1)
		}
		connect(t, machines[name], "eth0", router, port)
		router.receive(port)
	}
	machines["client"].receive("eth0")
	machines["client"].run("ip address add 2001:db8:c::1/64 dev eth0 nodad && ip route add " +
		"default via 2001:db8:c::ff")
	deb := pack(t, "1")
	for _, m := range machines {
		m.give(deb, "/root/sextant.deb")
		m.run("rm -f /var/www/html/*; [ ! -e /etc/frr/daemons ] || sed -i 's/^bgpd=.*/bgpd=no/' " +
			"/etc/frr/daemons")
	}
	for _, s := range steps {
		for _, name := range names {
			if s.who == name || s.who == "web*" && strings.HasPrefix(name, "web") {
				machines[name].follow(s)
			}
		}
	}
}

var prompt = regexp.MustCompile(`^(client|router|edge|web\*|web[0-9])# (.*)$`)

// stepsOf reads the fenced blocks of a page: prompts with commands, each with the lines until the
// next one.
func stepsOf(page string) (steps []step) {
	var last *step
	end := "" // of a document that the command takes
	fenced := false
	for i, code := range strings.Split(page, "\n") {
		parts := prompt.FindStringSubmatch(code)
		if strings.HasPrefix(code, "```") {
			fenced = !fenced
			last = nil
			continue
		}
		switch {
		case end != "":
			last.command += "\n" + code
			if code == end {
				end = ""
			}
		case !fenced:
		case parts != nil:
			steps = append(steps, step{line: i + 1, who: parts[1], command: parts[2]})
			last = &steps[len(steps)-1]
			if document := regexp.MustCompile(`<<'?(\w+)'?$`).FindStringSubmatch(
				parts[2]); document != nil {
				end = document[1]
			}
		case last != nil:
			last.answer = append(last.answer, code)
		}
	}
	return steps
}

// settle is how long an answer may take to become the one that is shown: routes are on their way.
const settle = 30 * time.Second

// follow types a command until it answers as shown. One that fails must be shown to say something.
// What a client asks is asked once: the guide says before that it can, and traffic is not to fail.
func (m *machine) follow(s step) {
	m.t.Helper()
	for deadline := time.Now().Add(settle); ; time.Sleep(200 * time.Millisecond) {
		said, err := m.try(s.command)
		shown := len(s.answer) > 0 && !slices.Equal(s.answer, []string{"..."})
		if (err == nil || shown) && answers(said, s.answer) {
			return
		}
		if s.who == "client" || time.Now().After(deadline) {
			m.t.Errorf("%s:%d: %s# %s\nanswers (%v)\n%s\nbut should\n%s", guide, s.line, m.name,
				s.command, err, said,
				strings.Join(s.answer, "\n"))
			for _, other := range m.others {
				seen, _ := other.try("ip -6 route; ip -6 neighbour; ip link show dev eth0; ls -R " +
					"/sys/fs/bpf/sextant")
				m.t.Logf("%s:\n%s", other.name, seen)
			}
			return
		}
	}
}

// answers tells whether all that was said is what is shown, where "..." stands for anything.
func answers(said string, shown []string) bool {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if strings.TrimSpace(said) == "" {
		lines = nil
	}
	if len(shown) == 0 {
		return len(lines) == 0
	}
	if shown[0] == "..." {
		return answers(said, shown[1:]) || len(lines) > 0 && answers(strings.Join(lines[1:], "\n"),
			shown)
	}
	if len(lines) == 0 || !matches(lines[0], shown[0]) {
		return false
	}
	return answers(strings.Join(lines[1:], "\n"), shown[1:])
}

func matches(line, shown string) bool {
	var parts []string
	for part := range strings.SplitSeq(shown, "...") {
		words := strings.Fields(part)
		for i := range words {
			words[i] = regexp.QuoteMeta(words[i])
		}
		parts = append(parts, strings.Join(words, `\s+`))
	}
	return regexp.MustCompile(`^\s*` + strings.Join(parts, `.*`) + `\s*$`).MatchString(line)
}

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		said, shown string
		want        bool
	}{
		{"", "", true},
		{"", "...", true},
		{"web1  up\n", "web1 up", true},
		{"web1 up\nweb2 up", "web1 up", false},
		{"a\nb\nc\nd", "...\nb\n...\nd", true},
		{"a\nb\nc", "...\nb\n...\nd", false},
		{"     13 this is web1", "...this is web1", true},
		{"a", "", false},
	} {
		shown := slices.DeleteFunc(strings.Split(test.shown, "\n"),
			func(line string) bool { return line == "" })
		if got := answers(test.said, shown); got != test.want {
			t.Errorf("%q as %q: %v, want %v", test.said, test.shown, got, test.want)
		}
	}
}
