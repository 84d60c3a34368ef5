package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/packet/lists"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
	"sextant/te/topology/format"
)

// topologyHelp says what a TOPOLOGY argument may be.
const topologyHelp = `TOPOLOGY is a file in any format that Sextant reads, a folder with Rocketfuel's weights.intra and latencies.intra,
- for standard input, or a topology of the data sets, like paper-table3/AS1239 ("sextant topology list").`

// readTopology opens what a TOPOLOGY argument names: a file in any format, a folder with
// Rocketfuel's pair of files, or a topology of the data sets. A file counts more than a topology of
// the same name.
func readTopology(arg string) (*topology.Graph, error) {
	return topologySource{}.read(arg, nil)
}

// topologySource says of a file what it doesn't say itself.
type topologySource struct {
	from, delayUnit string
}

func (t *topologySource) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.from, "from", "",
		"format of the file: "+formatNames()+"; by its content if not given")
	cmd.Flags().StringVar(&t.delayUnit, "delay-unit", "",
		"unit of the file's delays if it states none: ns, us, ms or s")
	complete(cmd, "from", strings.Split(formatNames(), ", ")...)
	complete(cmd, "delay-unit", "ns", "us", "ms", "s")
	cmd.ValidArgsFunction = completeTopologies
}

func formatNames() string {
	names := lists.Map(format.All(), func(f format.Format) string { return string(f) })
	return strings.Join(names, ", ")
}

// read opens a topology; "-" is the standard input, where there is one.
func (t topologySource) read(arg string, stdin io.Reader) (*topology.Graph, error) {
	unit, err := format.ParseDelayUnit(t.delayUnit)
	if err != nil {
		return nil, usageErrorf("--delay-unit: %w", err)
	}
	o := format.Options{Format: format.Format(t.from), DelayUnit: unit}
	if t.from != "" {
		if err := oneOf("from", t.from, strings.Split(formatNames(), ", ")); err != nil {
			return nil, err
		}
	}
	if arg == "-" && stdin != nil {
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read the topology from standard input: %w", err)
		}
		return format.Read(format.File{Name: "stdin", Text: text}, o)
	}
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return openDataset(arg, unit)
	case err != nil:
		return nil, unreadableTopology(arg, err)
	case info.IsDir():
		g, err := readRocketfuel(arg)
		if err != nil {
			return nil, fmt.Errorf("read the folder as Rocketfuel's two files: %w", err)
		}
		return g, nil
	case strings.HasSuffix(arg, ".intra") && (o.Format == "" || o.Format == format.Rocketfuel):
		return readRocketfuel(filepath.Dir(arg))
	}
	file, err := readText(arg)
	if err != nil {
		return nil, err
	}
	return format.Read(file, o)
}

func unreadableTopology(name string, err error) error {
	err = withoutPath(err)
	wrapped := fmt.Errorf("read topology %s: %w; give the path of a file that this user can read",
		name, err)
	if errors.Is(err, fs.ErrNotExist) {
		return coded{wrapped, exitNotFound}
	}
	return wrapped
}

// openDataset opens a topology of the data sets. The unit is that of delays for which the set
// states none.
func openDataset(name string, unit time.Duration) (*topology.Graph, error) {
	g, err := dataset.Open(name)
	switch {
	case errors.Is(err, dataset.ErrUnknown):
		return nil, notFoundf("there is no such file: %w", err)
	case err == nil && g.DelayUnit() == 0:
		g = g.WithDelayUnit(unit)
	}
	return g, err
}

// readRocketfuel reads the pair of files in a folder, and names the graph after the folder.
func readRocketfuel(folder string) (*topology.Graph, error) {
	weights, err := readText(filepath.Join(folder, "weights.intra"))
	if err != nil {
		return nil, err
	}
	latencies, err := readText(filepath.Join(folder, "latencies.intra"))
	if err != nil {
		return nil, err
	}
	name := folder
	if path, err := filepath.Abs(folder); err == nil {
		name = filepath.Base(path)
	}
	return format.ReadRocketfuel(name, weights, latencies)
}

func readText(name string) (format.File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return format.File{}, unreadableTopology(name, err)
	}
	return format.File{Name: name, Text: text}, nil
}

// completeTopologies offers the data sets, and files, for the first argument; files after it.
func completeTopologies(_ *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	others := func(name string) bool { return !strings.HasPrefix(name, word) }
	return slices.DeleteFunc(dataset.Names(), others), cobra.ShellCompDirectiveDefault
}
