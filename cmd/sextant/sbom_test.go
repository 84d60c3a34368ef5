package main

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBillOfMaterials(t *testing.T) {
	got := newBill("1.2", &debug.BuildInfo{
		GoVersion: "go1.26",
		Deps: []*debug.Module{
			{Path: "example.org/z", Version: "v1.0.0", Sum: "h1:z"},
			{Path: "example.org/a", Version: "v0.1.0",
				Replace: &debug.Module{Path: "example.org/fork", Version: "v0.2.0", Sum: "h1:f"}},
		},
		Settings: []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"},
			{Key: "vcs.time", Value: "now"}},
	})
	want := bill{
		BOMFormat: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata: billMetadata{component{
			Type: "application", Name: "sextant", Version: "1.2",
			Properties: []property{{"go:version", "go1.26"}, {"go:CGO_ENABLED", "0"}},
		}},
		Components: []component{
			{Type: "library", Name: "example.org/fork", Version: "v0.2.0",
				PURL:       "pkg:golang/example.org/fork@v0.2.0",
				Properties: []property{{"go:sum", "h1:f"}}},
			{Type: "library", Name: "example.org/z", Version: "v1.0.0",
				PURL:       "pkg:golang/example.org/z@v1.0.0",
				Properties: []property{{"go:sum", "h1:z"}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bill (-want +got):\n%s", diff)
	}
}
