//go:build packaging

package deb_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func requireTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%s is needed; scripts/deps.sh test fetches it", name)
	}
}

func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(name, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

func TestContents(t *testing.T) {
	requireTool(t, "dpkg-deb")
	deb := pack(t, "1")
	list := output(t, "dpkg-deb", "--contents", deb)
	plugins := regexp.MustCompile(`Global Lua Plugins:\s+(\S+)`).FindStringSubmatch(
		output(t, "tshark", "-G", "folders"))
	if plugins == nil {
		t.Fatal("tshark does not name the folder of Lua plugins; install tshark")
	}
	for path, mode := range map[string]string{
		"./usr/bin/sextant":                                  "-rwxr-xr-x",
		"./usr/lib/systemd/system/sextant.service":           "-rw-r--r--",
		"." + plugins[1] + "/sextant-telemetry.lua":          "-rw-r--r--",
		"./etc/default/sextant":                              "-rw-r--r--",
		"./etc/sextant/":                                     "drwxr-xr-x",
		"./usr/share/man/man8/sextant-agent.8.gz":            "-rw-r--r--",
		"./usr/share/man/man5/sextant-node.5.gz":             "-rw-r--r--",
		"./usr/share/man/man7/sextant.7.gz":                  "-rw-r--r--",
		"./usr/share/bash-completion/completions/sextant":    "-rw-r--r--",
		"./usr/share/zsh/vendor-completions/_sextant":        "-rw-r--r--",
		"./usr/share/fish/vendor_completions.d/sextant.fish": "-rw-r--r--",
		"./usr/share/doc/sextant/copyright":                  "-rw-r--r--",
		"./usr/share/doc/sextant/docs/tutorial/guide.md":     "-rw-r--r--",
		"./usr/share/doc/sextant/docs/figures/packet.svg":    "-rw-r--r--",
		"./usr/share/doc/sextant/sbom.cdx.json":              "-rw-r--r--",
		"./usr/share/doc/sextant/examples/quickstart.yaml":   "-rw-r--r--",
	} {
		if !regexp.MustCompile(`(?m)^` + mode + ` root/root .* ` + regexp.QuoteMeta(path) +
			`$`).MatchString(list) {
			t.Errorf("no %s with mode %s of root in\n%s", path, mode, list)
		}
	}
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " root/root ") || !strings.Contains(line, " 2023-11-14 ") {
			t.Errorf("not of root, or not of the time of the commit: %s", line)
		}
	}
	if files := output(t, "dpkg-deb", "--info", deb,
		"conffiles"); files != "/etc/default/sextant\n" {
		t.Errorf("conffiles are %q", files)
	}
	if version := output(t, "dpkg-deb", "--field", deb, "Version"); version != "1\n" {
		t.Errorf("the version is %q", version)
	}
	var bill struct {
		Components []struct{ Name, Version string }
	}
	sbom := exec.Command("sh", "-c",
		"dpkg-deb --fsys-tarfile '"+deb+"' | tar -xO ./usr/share/doc/sextant/sbom.cdx.json")
	if text, err := sbom.Output(); err != nil || json.Unmarshal(text, &bill) != nil ||
		len(bill.Components) < 10 {
		t.Errorf("the bill of materials names %d components: %v", len(bill.Components), err)
	}
}

// The same binary twice: what the script adds is the same. That the binary is the same too,
// scripts/test-deb.sh shows.
func TestPackageIsReproducible(t *testing.T) {
	requireTool(t, "dpkg-deb")
	first, err := os.ReadFile(pack(t, "1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("LC_ALL", "C.UTF-8")
	second, err := os.ReadFile(packInto(t, t.TempDir(), "1"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two packages of the same binary differ")
	}
}

func TestLintian(t *testing.T) {
	requireTool(t, "lintian")
	said := output(t, "lintian", "--allow-root", "--fail-on", "error,warning",
		"--suppress-tags-from-file",
		"../../packaging/debian/lintian-suppressed", pack(t, "1"))
	if said != "" {
		t.Errorf("lintian: %s", said)
	}
}
