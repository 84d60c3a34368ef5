package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// versionInfo is what this binary is made of.
type versionInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		Example:           "  sextant version",
		Annotations:       seeAlso("sextant status"),
		Args:              takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return a.show(view{
				value: v,
				prose: fmt.Sprintf("sextant %s (%s, %s)\n", v.Version, v.Go, v.Platform),
				names: []string{v.Version},
			})
		},
	}
}
