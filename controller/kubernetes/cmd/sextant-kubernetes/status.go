package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/controller"
	"sextant/controller/kubernetes/plan"
)

func statusCommand() *cobra.Command {
	var c controller.Config
	var kubeconfig, namespace, output string
	cmd := &cobra.Command{Use: "status SERVICE", Args: cobra.ExactArgs(1),
		Short:   "Say of a Service who announces it, who serves it, and why not",
		Example: "  sextant-kubernetes status web --namespace default",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: write json, or leave it out", output)
			}
			if namespace == "" { // as kubectl does
				var err error
				if namespace, _, err = clusterOf(kubeconfig).Namespace(); err != nil {
					return err
				}
			}
			config, err := cluster(kubeconfig)
			if err != nil {
				return err
			}
			scheme, err := newScheme()
			if err != nil {
				return err
			}
			reader, err := client.New(config, client.Options{Scheme: scheme})
			if err != nil {
				return err
			}
			r, err := controller.Explain(cmd.Context(), reader, c,
				types.NamespacedName{Namespace: namespace, Name: args[0]})
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(r)
			}
			return show(cmd.OutOrStdout(), r)
		}}
	flags := cmd.Flags()
	flags.StringVarP(&namespace, "namespace", "n", "",
		"of the Service; by default that of the kubeconfig's context")
	flags.StringVar(&c.Class, "class", plan.Class, "loadBalancerClass of the Services to serve")
	flags.BoolVar(&c.DefaultClass, "default-class", false, "serve Services without a class, too")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "file that says how the API server is reached")
	flags.StringVarP(&output, "output", "o", "", "json for programs")
	return cmd
}

func show(w io.Writer, r *controller.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "Service %s/%s: %s\n", r.Namespace, r.Name,
		cmp.Or(strings.Join(r.Addresses, ", "), "no address"))
	for _, p := range r.Problems {
		fmt.Fprintf(t, "! %s\n", p)
	}
	fmt.Fprintln(t, "\nEDGE\tADDRESS\tREADY\tSERVICES\tBGP\tWHY NOT")
	for _, e := range r.Edges {
		sessions := "-" // or the node file's
		if e.Sessions > 0 {
			sessions = fmt.Sprintf("%d of %d", e.Established, e.Sessions)
		}
		fmt.Fprintf(t, "%s\t%s\t%v\t%d\t%s\t%s\n", e.Name, e.Address, e.Ready, e.Services,
			sessions, e.Why)
	}
	for _, p := range r.Ports {
		fmt.Fprintf(t, "\n%s: %d pods get new connections, %d keep theirs\n", p.Endpoint, p.Serving,
			p.Leaving)
		fmt.Fprintln(t, "POD\tNODE\tSID\tSTATE\tWHY NOT")
		for _, e := range p.Endpoints {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", e.Name, e.Node, cmp.Or(e.SID, "-"), e.State,
				e.Why)
		}
	}
	fmt.Fprintln(t)
	for _, e := range r.Events {
		fmt.Fprintf(t, "event %s: %s\n", e.Reason, e.Note)
	}
	return t.Flush()
}
