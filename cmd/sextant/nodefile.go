package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sextant/config"
)

// nodeFile is a node file as a command was given it: it is right in itself.
type nodeFile struct {
	name string
	text []byte
	node *config.Node
}

func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "file", "f", "", "node file, or - for standard input")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json") // fails without such a flag only
}

func nodeFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "node", "",
		"node file; that of the running agent if none is named")
	_ = cmd.MarkFlagFilename("node", "yaml", "yml", "json") // fails without such a flag only
}

// readNodeFile reads and checks a file before the agent is asked about it.
func (a *app) readNodeFile(ctx context.Context, file string) (nodeFile, error) {
	if file == "" {
		return nodeFile{}, usageErrorf("no node file is given; name one with -f FILE")
	}
	f := nodeFile{name: file}
	var err error
	if file == "-" {
		f.name = "stdin"
	}
	f.text, err = a.readAll(ctx, file)
	if err != nil {
		return f, fmt.Errorf("read node file %s: %w; give the path of a file that this user can "+
			"read", f.name,
			withoutPath(err))
	}
	f.node, err = config.Parse(f.name, f.text)
	return f, err
}

// withoutPath shortens an error that will be shown beside the path.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
