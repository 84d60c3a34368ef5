package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sextant/te/topology"
	"sextant/te/topology/format"
)

func (a *app) topologyConvert() *cobra.Command {
	var source topologySource
	var target topologyTarget
	cmd := &cobra.Command{
		Use: "convert TOPOLOGY [FILE]", Short: "Write a topology in another format",
		Long: `Write a topology in another format, to a file or to standard output. The format follows from --to or from the ending of
the file. What the format can't hold is left out, and said on standard error. Rocketfuel's two files go into a folder.

` + topologyHelp,
		Example: "  sextant topology convert paper-table3/AS3967 as3967.graphml\n" +
			"  sextant topology convert zoo/Abilene --to lab > abilene.yaml\n" +
			"  sextant topology convert measured.graph measured.json --delay-unit us",
		Annotations: seeAlso("sextant topology generate", "sextant lab up"),
		Args:        takes("TOPOLOGY", "[FILE]"),
		RunE: func(_ *cobra.Command, args []string) error {
			g, err := source.read(args[0], a.stdin)
			if err != nil {
				return err
			}
			target.file = ""
			if len(args) == 2 {
				target.file = args[1]
			}
			return a.writeTopology(g, target)
		},
	}
	source.flags(cmd)
	target.flags(cmd)
	return cmd
}

// topologyTarget is where a topology is written, and how.
type topologyTarget struct {
	file string // "" and "-" are standard output
	to   string
}

func (t *topologyTarget) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.to, "to", "",
		"format to write: "+formatNames()+"; by the ending of FILE if not given, or else edges")
	complete(cmd, "to", strings.Split(formatNames(), ", ")...)
}

func (t topologyTarget) format() (format.Format, error) {
	if t.to != "" {
		return format.Format(t.to), oneOf("to", t.to, strings.Split(formatNames(), ", "))
	}
	if t.file == "" || t.file == "-" {
		return format.Edges, nil
	}
	if f := format.OfName(t.file); f != "" {
		return f, nil
	}
	return "", usageErrorf("the ending of %s stands for no format; name one with --to: %s", t.file,
		formatNames())
}

// writeTopology writes a topology, and says what got lost.
func (a *app) writeTopology(g *topology.Graph, t topologyTarget) error {
	to, err := t.format()
	if err != nil {
		return err
	}
	if to == format.Rocketfuel {
		err = a.writeRocketfuel(g, t.file)
	} else {
		err = a.writeText(g, to, t.file)
	}
	if err != nil {
		return err
	}
	if lost := format.Lost(g, to); len(lost) > 0 && !a.quiet {
		a.say("left out, as %s can't hold them: %s", to, strings.Join(lost, ", "))
	}
	return nil
}

func (a *app) writeText(g *topology.Graph, to format.Format, file string) error {
	text, err := format.Write(g, to)
	if err != nil {
		return err
	}
	return a.writeFile(file, text)
}

// writeFile writes to a file, or to standard output if none is named.
func (a *app) writeFile(file string, text []byte) error {
	if file == "" || file == "-" {
		_, err := a.stdout.Write(text)
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("write %s: %w; name a file that this user can write", file,
			withoutPath(err))
	}
	if !a.quiet {
		a.say("wrote %s", file)
	}
	return nil
}

func (a *app) writeRocketfuel(g *topology.Graph, folder string) error {
	if folder == "" || folder == "-" {
		return usageErrorf("Rocketfuel keeps weights and latencies in two files; name a folder " +
			"for them")
	}
	weights, latencies, err := format.WriteRocketfuel(g)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make folder %s: %w; name one that this user can write to", folder,
			withoutPath(err))
	}
	for name, text := range map[string][]byte{"weights.intra": weights,
		"latencies.intra": latencies} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return fmt.Errorf("write %s in %s: %w; name a folder that this user can write to", name,
				folder, withoutPath(err))
		}
	}
	if !a.quiet {
		a.say("wrote weights.intra and latencies.intra in %s", folder)
	}
	return nil
}
