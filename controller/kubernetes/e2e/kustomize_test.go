package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomization.yaml makes what the chart does by default: its objects, all of its CRDs, and the
// namespace.
func TestKustomization(t *testing.T) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
		"../deploy")
	must(t, err)
	text, err := made.AsYaml()
	must(t, err)
	got := objectsOf(t, text)
	files, err := filepath.Glob("../deploy/chart/crds/*.yaml")
	must(t, err)
	want := map[string]any{}
	for _, file := range append(files, "../deploy/namespace.yaml", "../deploy/sextant.yaml") {
		text, err := os.ReadFile(file)
		must(t, err)
		maps.Copy(want, objectsOf(t, text))
	}
	if len(files) < 3 || len(want) < 15 {
		t.Fatalf("the chart has %d CRDs, and %d objects: the test does not find them any more",
			len(files), len(want))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("objects (-chart +kustomization):\n%s", diff)
	}
	for name := range want {
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s (-chart +kustomization):\n%s", name, diff)
		}
	}
}

// objectsOf reads a manifest.
func objectsOf(t *testing.T, text []byte) map[string]any {
	t.Helper()
	objects := map[string]any{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o.Object); err == io.EOF {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			objects[fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())] = o.Object
		}
	}
}
