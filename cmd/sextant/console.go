package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/web"
)

// Bounds of what a browser takes from the console's proxy.
const (
	consoleHeaderTimeout = 5 * time.Second
	consoleStop          = time.Second
)

func (a *app) consoleCommand() *cobra.Command {
	var lab, node, listen string
	var ofController bool
	cmd := &cobra.Command{
		Use: "console", Short: "Show what runs in a browser of this machine",
		Long: `Serve the console of an agent, or of a controller, to a browser of this machine, and print its address. The address has a
code that can be used once. What the browser asks goes to the agent as if this command asked: to its socket, to the agent of a
lab's node, or to one elsewhere. A daemon with api.listen serves the console itself. It ends with Ctrl-C.`,
		Example: "  sextant console --lab quickstart --node edge\n" +
			"  sextant console --context edge1",
		Annotations: seeAlso("sextant status", "sextant top", "sextant context"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.shown(lab, node, ofController)
			if err != nil {
				return err
			}
			return a.serveConsole(cmd.Context(), listen, client)
		},
	}
	cmd.Flags().StringVar(&lab, "lab", "", "a lab of this machine; with --node")
	cmd.Flags().StringVar(&node, "node", "", "the lab's node")
	cmd.Flags().BoolVar(&ofController, "of-controller", false,
		"show the controller, not the agent")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0",
		"address and port of the loopback; port 0: any that is free")
	return controllerFlag(cmd)[0]
}

// shown is the client of the daemon whose console is served.
func (a *app) shown(lab, node string, ofController bool) (*api.Client, error) {
	switch {
	case (lab == "") != (node == ""):
		return nil, usageErrorf("--lab and --node belong together; give both, or none")
	case ofController && lab != "":
		return nil, usageErrorf("a lab's node is no controller; name its socket with --controller")
	case ofController:
		if client := a.distant(access.Controller, "controller"); client != nil {
			return client, nil
		}
		f := a.command.Flags().Lookup("controller")
		return api.NewClientOf("controller", "sextant controller -f FILE", f.Value.String()), nil
	case lab == "":
		return a.agent(), nil
	}
	_, of, err := nodeOf(lab, node)
	if err != nil {
		return nil, err
	}
	if of.Socket == "" {
		return nil, &api.Error{Code: api.NotFound, Message: fmt.Sprintf("node %q of lab %q runs "+
			"no agent; sextant lab list shows nodes", node, lab)}
	}
	return a.connect(of.Socket), nil
}

func (a *app) serveConsole(ctx context.Context, listen string, client *api.Client) error {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return usageErrorf("--listen %q is no address of the loopback; write it like "+
			"127.0.0.1:8080, or use api.listen of the node file for other machines", listen)
	}
	status, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if _, err := api.Ask[any](status, client, "", "/v1/status", nil, nil); err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen for the browser: %w; choose another --listen", err)
	}
	server, address := consoleOf(l, client.Forward(""))
	ended := context.AfterFunc(ctx, func() {
		stop, cancel := context.WithTimeout(context.Background(), consoleStop)
		defer cancel()
		if server.Shutdown(stop) != nil {
			server.Close()
		}
	})
	defer ended()
	fmt.Fprintln(a.stdout, address)
	a.say("open this address in a browser of this machine; it can be used once. Ctrl-C ends it.")
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// consoleOf is a server of the console beside an API, and its address, which can be used once.
func consoleOf(l net.Listener, api http.Handler) (server *http.Server, address string) {
	proxy := web.NewProxy(l.Addr().String())
	return &http.Server{Handler: proxy.Handler(api), ReadHeaderTimeout: consoleHeaderTimeout},
		proxy.URL()
}
