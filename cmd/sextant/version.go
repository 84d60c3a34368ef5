package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"sextant/agent/monitoring"
)

// versionInfo is what this binary is made of.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	var sbom bool
	var of string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version, or what this program is made of",
		Example:     "  sextant version\n  sextant version --sbom",
		Annotations: seeAlso("sextant status"),
		RunE: func(*cobra.Command, []string) error {
			if sbom {
				return writeBill(a.stdout, version, of)
			}
			return a.showVersion()
		},
	}
	cmd.Flags().BoolVar(&sbom, "sbom", false,
		"print the software bill of materials: CycloneDX, JSON")
	cmd.Flags().StringVar(&of, "of", "",
		"with --sbom: of this binary of the same version, for another architecture")
	_ = cmd.Flags().MarkHidden("of") // packaging alone has such a binary
	return cmd
}

func (a *app) showVersion() error {
	v := versionInfo{version, monitoring.Revision(version), runtime.Version(),
		runtime.GOOS + "/" + runtime.GOARCH}
	return a.show(view{
		value: v,
		prose: fmt.Sprintf("sextant %s (%s, %s)\n", v.Version, v.Go, v.Platform),
		names: []string{v.Version},
	})
}
