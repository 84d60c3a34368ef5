package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sextant/config"
)

// rendered are the files that the chart is rendered into, with which values. The first is what
// kustomization.yaml has, and what the tests of a cluster apply.
var rendered = map[string][]string{
	"../deploy/sextant.yaml": nil,
	"testdata/all.yaml": {"gatewayClass=true", "monitoring=true", "defaultClass=true",
		"class=example.net/lb", "image.repository=registry.example.net/sextant", "image.tag=9",
		"imagePullSecrets[0].name=pull", "controller.replicas=1",
		"controller.nodeSelector.a=b", "node.nodeSelector.c=d", "node.templateSecret=template"},
}

// The chart is without a fault, and its rendered files are as they should be; UPDATE=1 writes them.
func TestChart(t *testing.T) {
	helm := filepath.Join(kubePrograms(t, "helm"), "helm")
	run := func(args ...string) string {
		out, err := exec.Command(helm, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("lint", "--strict", "../deploy/chart")
	for file, values := range rendered {
		args := []string{"template", "sextant", "../deploy/chart", "--namespace", namespace}
		for _, v := range values {
			args = append(args, "--set", v)
		}
		got := run(args...)
		if os.Getenv("UPDATE") != "" {
			must(t, os.WriteFile(file, []byte(got), 0o644))
			continue
		}
		want, err := os.ReadFile(file)
		must(t, err)
		if got != string(want) {
			t.Errorf("%s is not what the chart renders: UPDATE=1 make test-kube PKG=./e2e "+
				"RUN=TestChart writes it", file)
		}
	}
	chart, err := os.ReadFile("../deploy/chart/Chart.yaml")
	must(t, err)
	version, err := os.ReadFile("../../../VERSION")
	must(t, err)
	for _, key := range []string{"version: ", "appVersion: "} {
		if line := "\n" + key + strings.TrimSpace(string(version)) + "\n"; !strings.Contains(
			string(chart), line) {
			t.Errorf("Chart.yaml has not %q of the file VERSION", strings.TrimSpace(line))
		}
	}
}

// The node files of the how-to are without a fault, and of one cluster.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/howto/kubernetes.md")
	must(t, err)
	var nodes []*config.Node
	for _, block := range strings.Split(string(page), "\n```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "\n```\n")
		if !strings.HasPrefix(text, "node: ") {
			continue
		}
		n, err := config.Parse("kubernetes.md", []byte(text))
		must(t, err)
		nodes = append(nodes, n)
	}
	if len(nodes) != 2 || nodes[0].Edge == nil || nodes[1].Host == nil ||
		nodes[0].Secret != nodes[1].Secret || !reflect.DeepEqual(nodes[0].Domain.Locators,
		nodes[1].Domain.Locators) {
		t.Errorf("the page has not an edge's file and a template of the same domain: %+v", nodes)
	}
}
