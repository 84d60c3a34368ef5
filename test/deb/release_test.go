//go:build packaging

package deb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// packForm packs what a release has beside the Debian package, of this machine's binary.
func packForm(t *testing.T, form, version string) (file string) {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	stage, file := t.TempDir(), filepath.Join(t.TempDir(), "sextant."+form)
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	output(t, "../../scripts/stage.sh", stage, program, "amd64", form)
	cmd := exec.Command("go", "run", "./packaging/release", "--version", version, "--out", file,
		form, "amd64="+stage)
	cmd.Dir = "../.."
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pack: %v\n%s", err, said)
	}
	return file
}

// links are an edge's cables, whose other ends lead nowhere.
const links = "for i in 0 1; do ip link add eth$i type veth peer far$i; ip link set far$i up; " +
	"done; "

// forwards is what a machine must show while its edge does.
const forwards = "sextant status --brief | grep -q up && ip -o link show eth0 | grep -q prog/xdp"

// RPM's scriptlets, run by RPM under a systemd: an upgrade keeps programs attached, removing does
// not.
func TestRPMOnMachine(t *testing.T) {
	requireTool(t, "rpm")
	edge := boot(t, "edge")["edge"]
	edge.run(links + edgeSetUp)
	edge.give(packForm(t, "rpm", "1"), "/root/1.rpm")
	edge.give(packForm(t, "rpm", "2"), "/root/2.rpm")
	edge.run("rpm -i --nodeps 1.rpm && systemctl enable sextant && ! systemctl is-active sextant")
	edge.run("cat > /etc/sextant/node.yaml <<'EOF'\n" + edgeFile + "EOF\nsystemctl start sextant")
	edge.wait(forwards)
	before := edge.run("systemctl show --property MainPID sextant")
	edge.run("rpm -U --nodeps 2.rpm")
	edge.wait(forwards)
	if after := edge.run("systemctl show --property MainPID sextant"); after == before {
		t.Errorf("the agent was not restarted: %s", after)
	}
	edge.run("rpm -e sextant && ! ip -o link show eth0 | grep -q prog/xdp && " +
		"! command -v sextant && test -e /etc/sextant/node.yaml")
}

// The archive, laid over /usr by systemd-sysext.
func TestSystemExtension(t *testing.T) {
	edge := boot(t, "edge")["edge"]
	edge.give(packForm(t, "tar", "1"), "/root/sextant.tar.gz")
	edge.run("mkdir -p /var/lib/extensions/sextant && tar -C /var/lib/extensions/sextant " +
		"--strip-components=1 -xzf sextant.tar.gz && mount --make-rshared / && " +
		"systemd-sysext refresh")
	if said := edge.run("sextant version && systemd-sysext list --no-legend"); !regexp.MustCompile(
		`(?s)^sextant .*sextant `).MatchString(said) {
		t.Errorf("extension: %s", said)
	}
	edge.run("systemctl daemon-reload && systemctl cat sextant")
}

// What Ansible's role does: installs, writes, starts, and applies what has changed; a second run
// changes nothing, and a node file with a fault changes nothing.
func TestAnsibleRole(t *testing.T) {
	requireTool(t, "ansible-playbook")
	edge := boot(t, "edge")["edge"]
	edge.run(links + edgeSetUp)
	edge.give(pack(t, "1"), "/root/sextant_1_amd64.deb")
	give(t, edge, "../../packaging/ansible")
	node := strings.ReplaceAll("\n"+edgeFile, "\n", "\n  ")
	play := func() (string, error) {
		edge.run("cat > vars.yaml <<'EOF'\nsextant_package: /root/sextant_1_amd64.deb\n" +
			"sextant_confirm: 30\nsextant_node:" + node + "\nEOF")
		return edge.try("cd ansible && LC_ALL=C.UTF-8 ansible-playbook -c local -i " +
			"'localhost,' -e @/root/vars.yaml -e ansible_python_interpreter=/usr/bin/python3 " +
			"play.yml")
	}
	edge.run("cat > ansible/play.yml <<'EOF'\n- hosts: localhost\n  roles: [sextant]\nEOF")
	expect := func(what, recap string) {
		t.Helper()
		if said, err := play(); err != nil || !strings.Contains(said, recap) {
			t.Fatalf("%s: %v, want %s\n%s", what, err, recap, said)
		}
	}
	expect("first run", "failed=0")
	edge.run(forwards)
	expect("second run", "changed=0")
	node = strings.Replace(node, `"fcbb:bb00:1::"}]`,
		`"fcbb:bb00:1::"}, {name: another, sid: "fcbb:bb00:2::"}]`, 1)
	expect("another backend", "changed=3") // written, applied, confirmed
	edge.run("sextant backend list web -o name | grep -q another && ! sextant config confirm")
	for fault, hint := range map[string]string{"port: 99999": "99999",
		"port: 81": "would end connections"} {
		kept := node
		node = strings.Replace(node, "port: 80", fault, 1)
		if said, err := play(); err == nil || !strings.Contains(said, hint) {
			t.Errorf("%s is applied: %v\n%s", fault, err, said)
		}
		edge.run("grep -q 'port: 80' /etc/sextant/node.yaml && sextant diff -f " +
			"/etc/sextant/node.yaml")
		node = kept
	}
}

// give puts a folder into the home of a machine's root.
func give(t *testing.T, m *machine, folder string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "folder.tar")
	output(t, "tar", "-C", filepath.Dir(folder), "-cf", archive, filepath.Base(folder))
	m.give(archive, "/root/folder.tar")
	m.run("tar xf folder.tar")
	if err := os.Remove(archive); err != nil {
		t.Error(err)
	}
}
