package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sextant/config"
)

// nodeFile is a node file as a command was given it.
type nodeFile struct {
	name string
	text []byte
	node *config.Node // nil: it was not checked, or has faults
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

// readNodeFile reads and checks a file.
func (a *app) readNodeFile(ctx context.Context, file string) (nodeFile, error) {
	f, err := a.readNodeText(ctx, file)
	if err == nil {
		f.node, err = config.Parse(f.name, f.text)
	}
	return f, err
}

// readNodeText reads a file that the agent is to check.
func (a *app) readNodeText(ctx context.Context, file string) (nodeFile, error) {
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
	return f, nil
}

// refused is why the agent did not take the file: its faults where there are some, for which no
// agent has to answer. Reading ten thousand services here takes longer than a change of one, so it
// comes last.
func (f nodeFile) refused(err error) error {
	if _, faults := config.Parse(f.name, f.text); faults != nil {
		return faults
	}
	return err
}

// withoutPath shortens an error that will be shown beside the path.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
