package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersionScript: a version tells its commit until the commit is the tagged one, and says so
// when files differ from it. A tree without git is what VERSION says.
func TestVersionScript(t *testing.T) {
	script, err := os.ReadFile("../../scripts/version.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "scripts/version.sh", string(script))
	write(t, dir, "VERSION", "1.2.3\n")
	in := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "TZ=Asia/Tokyo",
			"GIT_COMMITTER_DATE=2026-11-23T01:02:03+09:00",
			"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	versions := func(when, plain, debian string) {
		t.Helper()
		if got := in("scripts/version.sh"); got != plain {
			t.Errorf("%s: version %q, want %q", when, got, plain)
		}
		if got := in("scripts/version.sh", "--debian"); got != debian {
			t.Errorf("%s: Debian's version %q, want %q", when, got, debian)
		}
	}
	versions("without git", "1.2.3", "1.2.3")
	in("git", "init", "--quiet")
	versions("without a commit", "1.2.3", "1.2.3")
	in("git", "add", ".")
	in("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "a")
	commit := in("git", "rev-parse", "--short=12", "HEAD")
	debian := "1.2.3+git20261122160203." + commit // Debian's is in UTC
	versions("at a commit", "1.2.3+"+commit, debian)
	in("git", "tag", "v1.2.2")
	versions("at another tag", "1.2.3+"+commit, debian)
	write(t, dir, "VERSION", "1.2.3\n\n")
	versions("with a change", "1.2.3+"+commit+".dirty", debian)
	write(t, dir, "VERSION", "1.2.3\n")
	in("git", "tag", "v1.2.3")
	versions("at its tag", "1.2.3", "1.2.3")
}
