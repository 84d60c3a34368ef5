package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sextant/config"
	"sextant/config/convert"
)

func (a *app) convertCommand() *cobra.Command {
	cmd := noun("convert", "Make a node file from the rules of another load balancer",
		seeAlso("sextant check", "sextant ipvsadm"),
		a.convertFrom("ipvsadm", "what ipvsadm -S -n prints", convert.IPVS),
		a.convertFrom("keepalived", "keepalived.conf", convert.Keepalived),
		a.convertFrom("haproxy", "haproxy.cfg, the sections in mode tcp", convert.HAProxy))
	cmd.Long = `Make the node file of an edge from the rules of another load balancer, and print it. What has no counterpart is said on
stderr, with its line. Balancing by content (mode http of HAProxy) and persistence by client have none.`
	return cmd
}

func (a *app) convertFrom(name, what string,
	read func(string) (*convert.Rules, error)) *cobra.Command {
	n := convert.Node{}
	var sids string
	cmd := &cobra.Command{
		Use: name + " FILE --map FILE", Short: "Convert " + what,
		Long: `Convert ` + what + `. FILE may be - for standard input. The map has the SID of each real server, a line each:
an address, a SID and, if wanted, a name. Packets reach servers as clients sent them, with the VIP as destination: each
server needs the VIP on its loopback, and the agent in the role host, or a router with End.DT beside it.`,
		Example:     "  sextant convert " + name + " rules --map servers.sids",
		Annotations: seeAlso("sextant check", "sextant apply"),
		Args:        takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if sids == "" {
				return usageErrorf("no map is given; name one with --map FILE")
			}
			var err error
			text, err := a.readFile(cmd.Context(), sids)
			if err != nil {
				return err
			}
			if n.SIDs, err = convert.ReadSIDs(sids, string(text)); err != nil {
				return err
			}
			if text, err = a.readFile(cmd.Context(), args[0]); err != nil {
				return err
			}
			rules, err := read(string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return a.writeConverted(rules, n, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&sids, "map", "", "file with the SIDs of real servers")
	flags.StringVar(&n.Name, "node", "edge1", "name of the node")
	flags.StringVar(&n.Block, "block", "fcbb:bb00::/32", "SID block of the domain")
	flags.StringVar(&n.Infrastructure, "infrastructure", "fd00:5e::/48",
		"prefix of the domain's sources of SRv6")
	flags.StringVar(&n.Interface, "interface", "eth0", "interface of the edge")
	flags.StringVar(&n.Source, "source", "fd00:5e::e1", "outer source address of the edge")
	flags.StringVar(&n.SecretFile, "secret-file", "/etc/sextant/secret",
		"file of the cluster's secret")
	return cmd
}

// writeConverted prints the node file, which is one that check accepts.
func (a *app) writeConverted(rules *convert.Rules, n convert.Node, from string) error {
	text, err := rules.YAML(n)
	if err != nil {
		return err
	}
	if _, err := config.Parse("converted", text); err != nil {
		return fmt.Errorf("what %s says makes no node file that is right:\n%w", from, err)
	}
	if !a.quiet {
		for _, note := range rules.Notes {
			a.say("%s: %s", from, note)
		}
	}
	_, err = a.stdout.Write(text)
	return err
}
