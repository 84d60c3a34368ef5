package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	return noun("config", "The running configuration, and those that ran before",
		seeAlso("sextant apply"), a.configShow(), a.configHistory(), a.configRollback(),
		a.configConfirm(), a.configExplain(), a.configSchema())
}

func (a *app) configShow() *cobra.Command {
	var secrets bool
	cmd := &cobra.Command{
		Use: "show", Short: "Print the running configuration as a node file",
		Long: `Print the running configuration as a node file, with the changes that were made while it ran. A secret
that is in the file itself is left out unless --secrets is given; without it the file can't be applied.`,
		Example:     "  sextant lab exec quickstart edge -- sextant config show",
		Annotations: seeAlso("sextant diff", "sextant apply"),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			text, err := a.agent().Config(ctx, secrets)
			if err != nil {
				return err
			}
			if a.output != formatJSON {
				_, err := a.stdout.Write(text)
				return err
			}
			asJSON, err := yaml.YAMLToJSON(text)
			if err != nil {
				return fmt.Errorf("write JSON: %w", err)
			}
			return writeJSON(a.stdout, json.RawMessage(asJSON))
		}),
	}
	cmd.Flags().BoolVar(&secrets, "secrets", false, "with the cluster's secret")
	return cmd
}
