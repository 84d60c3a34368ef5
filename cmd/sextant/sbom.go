package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
)

// bill is a software bill of materials: CycloneDX 1.5, as far as a Go binary knows of itself.
type bill struct {
	BOMFormat   string       `json:"bomFormat"`
	SpecVersion string       `json:"specVersion"`
	Version     int          `json:"version"`
	Metadata    billMetadata `json:"metadata"`
	Components  []component  `json:"components"`
}

type billMetadata struct {
	Component component `json:"component"`
}

// component is the program, or a module that is linked into it. PURL is its package URL.
type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// newBill lists the modules of a build. Sums are those of go.sum: they name what was linked, to the
// byte.
func newBill(version string, build *debug.BuildInfo) bill {
	b := bill{
		BOMFormat: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata: billMetadata{component{Type: "application", Name: "sextant", Version: version,
			Properties: settings(build)}},
	}
	for _, m := range build.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version,
			PURL: "pkg:golang/" + m.Path + "@" + m.Version}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(x, y component) int { return cmp.Compare(x.Name, y.Name) })
	return b
}

// settings are the settings of the build that change what it makes.
func settings(build *debug.BuildInfo) []property {
	kept := []property{{"go:version", build.GoVersion}}
	for _, s := range build.Settings {
		switch s.Key {
		case "CGO_ENABLED", "GOARCH", "GOOS", "GOAMD64", "GOARM64", "-trimpath":
			kept = append(kept, property{"go:" + s.Key, s.Value})
		}
	}
	return kept
}

// writeBill writes the bill of this program, or of the binary in a file.
func writeBill(w io.Writer, version, file string) error {
	build, err := buildOf(file)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(newBill(version, build)); err != nil {
		return fmt.Errorf("write bill of materials: %w", err)
	}
	return nil
}

func buildOf(file string) (*debug.BuildInfo, error) {
	if file != "" {
		build, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the build information of %s: %w", file, err)
		}
		return build, nil
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("read the build information of this program: it has none; build " +
			"it with modules: go build ./cmd/sextant")
	}
	return build, nil
}
