package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/access"
	"sextant/agent/api"
)

// contextsFile is where contexts are kept (XDG Base Directory Specification).
func (a *app) contextsFile() (string, error) {
	if file := a.getenv("SEXTANT_CONTEXTS"); file != "" {
		return file, nil
	}
	dir := a.getenv("XDG_CONFIG_HOME")
	if home := a.getenv("HOME"); !filepath.IsAbs(dir) && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("it is not known where contexts are kept; set HOME, or name the " +
			"file in SEXTANT_CONTEXTS")
	}
	return filepath.Join(dir, "sextant", "contexts.yaml"), nil
}

func (a *app) contexts() ([]access.Context, string, error) {
	file, err := a.contextsFile()
	if err != nil {
		return nil, "", err
	}
	list, err := access.ReadContexts(file)
	return list, file, err
}

// elsewhere is how the daemon is reached that the command line names by address or context, or that
// is the current one; nil: the one of a socket of this machine.
func (a *app) elsewhere(daemon string, socketNamed bool) (*api.Remote, error) {
	switch {
	case a.address != "" && a.context != "":
		return nil, usageErrorf("--address and --context both name an agent; give one of them")
	case a.address != "":
		c, err := a.contextOf("", daemon, a.address, a.credentials)
		remote := c.Remote()
		return &remote, err
	case a.context == "" && socketNamed:
		return nil, nil
	}
	if _, err := a.contextsFile(); err != nil && a.context == "" {
		return nil, nil // there can be none
	}
	list, _, err := a.contexts()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(c access.Context) bool {
		return c.Current && c.Daemon == daemon
	})
	if a.context != "" {
		if i, err = access.ContextNamed(list, a.context); err == nil && list[i].Daemon != daemon {
			err = usageErrorf("context %q is that of the %s %s, and this command talks to the %s",
				a.context, list[i].Daemon, list[i].Address, daemon)
		}
		if err != nil {
			return nil, err
		}
	}
	if i < 0 {
		return nil, nil
	}
	return new(list[i].Remote()), nil
}

// distant makes a client of a daemon elsewhere; nil if it is one of this machine, whose socket the
// flag names.
func (a *app) distant(daemon, flag string) *api.Client {
	if a.command == nil || worksHere(a.command) {
		return nil
	}
	f := a.command.Flags().Lookup(flag)
	remote, err := a.elsewhere(daemon, f != nil && f.Changed)
	if err != nil {
		return api.NewFailingClient(err)
	}
	if remote == nil {
		return nil
	}
	client, err := api.NewRemoteClient(daemon, *remote)
	if err != nil {
		return api.NewFailingClient(err)
	}
	return client
}

// credentials are files by which a daemon elsewhere lets commands in.
type credentials struct{ token, ca, certificate, key string }

// contextOf reads the files of a daemon elsewhere.
func (a *app) contextOf(name, daemon, address string, files credentials) (access.Context, error) {
	c := access.Context{Name: name, Daemon: daemon, Address: address}
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return c, usageErrorf("--address %q is no address and port; write it like edge1:9479 or "+
			"[fd00:5e::1]:9479", address)
	}
	if files.token == "" {
		return c, usageErrorf("no token is given; name its file with --token-file, or - for " +
			"standard input")
	}
	for _, f := range []struct {
		path string
		into *string
	}{{files.token, &c.Token}, {files.ca, &c.CA}, {files.certificate, &c.Certificate},
		{files.key, &c.Key}} {
		if f.path == "" {
			continue
		}
		text, err := a.readFile(a.life, f.path)
		if err != nil {
			return c, err
		}
		*f.into = string(text)
	}
	c.Token = strings.TrimSpace(c.Token)
	if c.Token == "" || strings.ContainsAny(c.Token, " \t\r\n") {
		return c, fmt.Errorf("%s does not hold one word; write the token into it", files.token)
	}
	return c, nil
}

func (a *app) contextCommand() *cobra.Command {
	cmd := noun("context", "Name agents and controllers elsewhere, for all commands",
		seeAlso("sextant token"), a.contextAdd(), a.contextList(), a.contextUse(),
		a.contextRemove())
	cmd.Long = `Name agents and controllers elsewhere. Commands talk to the one that --context names, or else to the current one of
"context use", or else to the socket of this machine; --socket names a socket, whatever the current one is. Contexts have
tokens: they are kept in sextant/contexts.yaml of $XDG_CONFIG_HOME or ~/.config, for its owner alone.`
	return cmd
}

func (a *app) contextAdd() *cobra.Command {
	var daemon string
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a context, or replace it",
		Long: "Add a context, or replace the one of this name. It is tried once: what it names " +
			"must " +
			"answer.",
		Example: "  sextant context add edge1 --address edge1:9479 --token-file token --ca " +
			"api.pem\n" +
			"  sextant context use edge1",
		Annotations: seeAlso("sextant context use", "sextant token add"),
		Args:        takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("daemon", daemon, []string{access.Agent,
				access.Controller}); err != nil {
				return err
			}
			c, err := a.contextOf(args[0], daemon, a.address, a.credentials)
			if err != nil {
				return err
			}
			client, err := api.NewRemoteClient(daemon, c.Remote())
			if err != nil {
				return err
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			if _, err := api.Ask[any](ctx, client, "", "/v1/status", nil, nil); err != nil {
				return err
			}
			return a.editContexts(func(list []access.Context) ([]access.Context, error) {
				if i, err := access.ContextNamed(list, c.Name); err == nil {
					c.Current = list[i].Current && list[i].Daemon == daemon
					list[i] = c
					return list, nil
				}
				return append(list, c), nil
			})
		},
	}
	cmd.Flags().StringVar(&a.certificate, "certificate", "",
		"certificate of this client in PEM, if the other side wants one")
	cmd.Flags().StringVar(&a.key, "key", "", "its key in PEM")
	cmd.Flags().StringVar(&daemon, "daemon", access.Agent, "what answers: agent or controller")
	complete(cmd, "daemon", access.Agent, access.Controller)
	return cmd
}

func (a *app) editContexts(edit func([]access.Context) ([]access.Context, error)) error {
	list, file, err := a.contexts()
	if err != nil {
		return err
	}
	next, err := edit(list)
	if err != nil {
		return err
	}
	return access.WriteContexts(file, next)
}

// contextItem is a context in JSON, without what must not be shown.
type contextItem struct {
	Name    string `json:"name"`
	Daemon  string `json:"daemon"`
	Address string `json:"address"`
	Current bool   `json:"current"`
}

func (a *app) contextList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the contexts, without their tokens",
		Example:     "  sextant context list",
		Annotations: seeAlso("sextant context use"),
		RunE: func(*cobra.Command, []string) error {
			list, _, err := a.contexts()
			if err != nil {
				return err
			}
			items := []contextItem{}
			for _, c := range list {
				items = append(items, contextItem{c.Name, c.Daemon, c.Address, c.Current})
			}
			t := table{columns: []string{"NAME", "DAEMON", "ADDRESS", "CURRENT"}}
			return a.show(listView(items, t, func(c contextItem) (string, []any) {
				return c.Name, []any{c.Name, c.Daemon, c.Address, textIf(c.Current, "yes")}
			}))
		},
	}
}

func (a *app) contextUse() *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: "use [NAME]", Short: "Choose the context that commands talk to",
		Long: "Choose the context that commands talk to, of its kind of daemon. With --none, " +
			"they talk to the sockets of this machine again.",
		Example:     "  sextant context use edge1\n  sextant context use --none",
		Annotations: seeAlso("sextant context list"),
		Args:        takes("[NAME]"), ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			if none == (len(args) == 1) {
				return usageErrorf("name a context, or give --none")
			}
			return a.editContexts(func(list []access.Context) ([]access.Context, error) {
				chosen := -1
				if !none {
					var err error
					if chosen, err = access.ContextNamed(list, args[0]); err != nil {
						return nil, err
					}
				}
				for i := range list {
					if none || list[i].Daemon == list[chosen].Daemon {
						list[i].Current = i == chosen
					}
				}
				return list, nil
			})
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "talk to the sockets of this machine")
	return cmd
}

func (a *app) contextRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a context",
		Long: "Remove a context, with its token. The token is valid still: remove it on the node " +
			"(sextant token remove).",
		Example:     "  sextant context remove edge1",
		Annotations: seeAlso("sextant context list", "sextant token remove"),
		Args:        takes("NAME"), ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.editContexts(func(list []access.Context) ([]access.Context, error) {
				i, err := access.ContextNamed(list, args[0])
				if err != nil {
					return nil, err
				}
				return slices.Delete(list, i, i+1), nil
			})
		},
	}
}

func (a *app) completeContexts(*cobra.Command, []string, string) ([]string,
	cobra.ShellCompDirective) {
	list, _, _ := a.contexts() // without them, there is nothing to offer
	var names []string
	for _, c := range list {
		names = append(names, c.Name+"\t"+c.Daemon+" "+c.Address)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
