package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lab"
	"sextant/linux"
)

// Arena is a lab while it is up, with what experiments need of its nodes.
type Arena struct {
	*lab.Lab
	Spaces map[string]*linux.Netns // by node
	Agents map[string]*api.Client  // by node; each keeps its connections, so there is one
}

// InLab builds a lab, calls body and takes the lab down again, whatever happens. If ctx ends
// before, the error wraps its cause.
func InLab(ctx context.Context, spec *lab.Spec, options lab.Options,
	body func(context.Context, *Arena) error) error {
	return lab.Run(ctx, spec, options, func(ctx context.Context, l *lab.Lab) error {
		a := &Arena{l, map[string]*linux.Netns{}, map[string]*api.Client{}}
		defer a.close()
		err := a.open()
		if err == nil {
			err = body(ctx, a)
		}
		if ctx.Err() != nil { // whatever error that led to
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		return err
	})
}

// InExample is InLab for the lab of a file, under another name, and with what change makes of it;
// nil: nothing.
func InExample(ctx context.Context, name string, text []byte, change func(*lab.Spec) error,
	options lab.Options, body func(context.Context, *Arena) error) error {
	spec, err := lab.Parse(name+".yaml", text)
	if err != nil {
		return err
	}
	spec.Name = name
	if change != nil {
		if err := change(spec); err != nil {
			return err
		}
	}
	return InLab(ctx, spec, options, body)
}

func (a *Arena) open() (err error) {
	for _, n := range a.Nodes {
		a.Agents[n.Name] = api.NewClient(n.Socket)
		if a.Spaces[n.Name], err = linux.OpenNetns(n.Namespace); err != nil {
			delete(a.Spaces, n.Name)
			return err
		}
	}
	return nil
}

func (a *Arena) close() {
	for _, space := range a.Spaces {
		space.Close()
	}
}

// Change applies a node's file with other settings; the file stays as it is.
func (a *Arena) Change(ctx context.Context, name string, change func(*config.Node)) error {
	node, err := a.Node(name)
	if err != nil {
		return err
	}
	file := filepath.Join(node.Dir, "node.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := config.Parse(file, text)
	if err != nil {
		return err
	}
	change(n)
	if text, err = config.Marshal(n); err != nil {
		return err
	}
	if _, err := a.Agents[name].Apply(ctx, file, text, false); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
