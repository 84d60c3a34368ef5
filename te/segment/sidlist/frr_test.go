package sidlist_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const staticd = "/usr/lib/frr/staticd"

// refusal is how FRR says that it doesn't know a line.
var refusal = regexp.MustCompile(`No such command on config line (\d+)`)

// TestFRRKnowsTheLines gives staticd a configuration of our lines, which it reads without running
// (--dryrun). FRR before 9.1 knows all of a line but the segments: it must refuse these for nothing
// else.
func TestFRRKnowsTheLines(t *testing.T) {
	version, err := exec.Command(staticd, "--version").Output()
	if err != nil {
		t.Fatalf("FRR is not there: %v; install the Debian package frr", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: staticd starts as root and becomes user frr")
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(version), "staticd version %d.%d", &major, &minor); err != nil {
		t.Fatalf("version %q: %v", version, err)
	}
	g := ring(t, false)
	l, err := plan(t, g).List(chord(t, g))
	if err != nil {
		t.Fatal(err)
	}
	uncompressed := l
	uncompressed.Carriers = nil
	dst := netip.MustParsePrefix("2001:db8:7::/48")
	lines := l.FRR(dst, "eth1") + "\n" + uncompressed.FRR(dst, "eth1") + "\n"
	before, _, _ := strings.Cut(l.FRR(dst, "eth1"), " segments ")
	refused := refusedBy(t, lines+before+"\nno such thing\n")
	want := "[7]" // the last line alone, which shows that refusals are noticed
	if major < 9 || major == 9 && minor == 0 {
		want = "[2 4 7]"
	}
	if fmt.Sprint(refused) != want {
		t.Errorf("FRR %d.%d refuses lines %v, want %s, of\n%s", major, minor, refused, want,
			lines+before)
	}
}

// refusedBy lists the lines of a configuration that staticd does not know.
func refusedBy(t *testing.T, text string) (lines []int) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // staticd gives up being root
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "staticd.conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(staticd, "--dryrun", "--config_file", file, "--pid_file",
		filepath.Join(dir, "pid"), "--vty_socket", dir,
		"--log", "stdout").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, match := range refusal.FindAllSubmatch(out, -1) {
		n, err := strconv.Atoi(string(match[1]))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, n)
	}
	slices.Sort(lines) // each is logged to more than one place
	return slices.Compact(lines)
}
