package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/monitoring"
)

const monitoringFolder = "../../packaging/monitoring"

// made writes a file that is made from the program, or sees that it is as it should be.
func made(t *testing.T, file string, want []byte, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the program says (-want +got, go test -args -update writes "+
			"it):\n%s",
			file, diff)
	}
}

// The page of metrics, the alerts with their tests and the dashboards are those of the program.
func TestMonitoring(t *testing.T) {
	page, err := monitoring.Page()
	made(t, "../../docs/reference/metrics.md", []byte(page), err)
	text, err := monitoring.AlertRules()
	made(t, filepath.Join(monitoringFolder, "alerts.yaml"), text, err)
	text, err = monitoring.AlertTests("alerts.yaml")
	made(t, filepath.Join(monitoringFolder, "alerts_test.yaml"), text, err)
	for _, d := range monitoring.Dashboards() {
		text, err := d.JSON()
		made(t, filepath.Join(monitoringFolder, d.Name+".json"), text, err)
	}
}

// Panels of a dashboard have their own ids, and do not lie over one another.
func TestDashboardsAreLaidOut(t *testing.T) {
	type panel struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
	}
	for _, d := range monitoring.Dashboards() {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var page struct{ Panels []panel }
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, p := range page.Panels {
			if g := p.GridPos; g.X+g.W > 24 || ids[p.ID] {
				t.Errorf("%s: panel %q reaches beyond the page, or has an id of another", d.Name,
					p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: panels %q and %q overlap", d.Name, other, p.Title)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}
