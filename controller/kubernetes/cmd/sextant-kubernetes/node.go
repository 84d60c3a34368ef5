package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/config"
	"sextant/controller/kubernetes/node"
	"sextant/controller/kubernetes/plan"
)

func nodeCommand() *cobra.Command {
	var s node.Settings
	var kubeconfig, template string
	var verbose bool
	cmd := &cobra.Command{Use: "node", Args: cobra.NoArgs,
		Short: "Make the pods of this node take packets from edges",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Log = logTo(verbose)
			text, err := os.ReadFile(template)
			if err != nil {
				return fmt.Errorf("read the template of node files: %w", err)
			}
			if s.Template, err = config.Parse(template, text); err != nil {
				return err
			}
			if s.Sextant, err = exec.LookPath(s.Sextant); err != nil {
				return fmt.Errorf("find the program sextant: %w; name it with --sextant", err)
			}
			if s.Node == "" {
				return errors.New("name the node with --node")
			}
			if err := s.Prepare(); err != nil {
				return err
			}
			return runNode(cmd.Context(), kubeconfig, s)
		}}
	flags := cmd.Flags()
	flags.StringVar(&s.Node, "node", os.Getenv("NODE_NAME"), "name of this Node")
	flags.StringVar(&s.Class, "class", plan.Class, "loadBalancerClass of the Services to serve")
	flags.BoolVar(&s.Default, "default-class", false, "serve Services without a class, too")
	flags.StringVar(&template, "template", "/etc/sextant/node.yaml",
		"node file with the domain, the secret, and what hosts have in common")
	flags.StringVar(&s.Sextant, "sextant", "sextant", "the program whose agents pods get")
	flags.StringVar(&s.Dir, "dir", "/run/sextant/pods", "where agents of pods keep their state")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "file that says how the API server is reached")
	flags.BoolVarP(&verbose, "verbose", "v", false, "log more")
	return cmd
}

func runNode(ctx context.Context, kubeconfig string, s node.Settings) error {
	config, err := cluster(kubeconfig)
	if err != nil {
		return err
	}
	if s.GatewayAPI, err = hasGatewayAPI(config); err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	objects, err := cache.New(config, cache.Options{Scheme: scheme,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&discoveryv1.EndpointSlice{}: {Transform: node.KeepOwn(s.Node)},
			&corev1.Pod{}:                node.OwnPods(s.Node),
		}})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		ended <- objects.Start(ctx)
		cancel()
	}()
	d := node.Daemon{Settings: s, Client: c, Cache: objects}
	err = d.Run(ctx)
	cancel()
	return errors.Join(err, <-ended)
}
