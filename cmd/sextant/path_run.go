package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sextant/datapath"
	"sextant/linux"
	"sextant/packet/cflb"
)

// runFlags are how connections of a command are steered.
type runFlags struct {
	selectorFlags
	via      string
	hopLimit uint8
	sources  []string
	ports    string
}

func (a *app) pathRun() *cobra.Command {
	f := runFlags{}
	cmd := &cobra.Command{
		Use:   "run --via INDEX,INDEX,... --key KEY -- COMMAND...",
		Short: "Run a command whose connections take a path",
		Long: `Run a command, unchanged, whose TCP connections and UDP packets take a path through routers with
controllable load balancing (CFLB). Processes that the command starts are steered too.

--via says for one router after the other which next hop it takes, by index (sextant path next-hops
at the router), or - for one that has no choice. --fields says what the routers read. Source ports:
a socket gets one with which they take the path when it is connected; sockets that the application
binds itself, and UDP without connect, are left alone. Flow labels: each IPv6 packet gets one as it
leaves, whatever label the kernel chose, also after losses (net.core.txrehash); IPv4 is left alone.
Loopback addresses are left alone. The exit code is that of the command. It needs root.`,
		Example: "  sextant path run --via 1,0 --fields source-port --radix 4 " +
			"--key 000102030405060708090a0b0c0d0e0f -- curl http://10.3.1.3/",
		Annotations: seeAlso("sextant path encode", "sextant path next-hops"),
		Args:        atLeast("COMMAND"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runSteered(f, args)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	_ = flags.MarkHidden("protocol") // both are steered
	flags.StringVar(&f.via, "via", "", "which next hop each router takes, by index")
	flags.Uint8Var(&f.hopLimit, "hop-limit", 64,
		"the hop limit, or time to live, with which packets come to the first router")
	flags.StringArrayVar(&f.sources, "source", nil, "the address from which connections are "+
		"opened, one of each IP version; by default that of the default route")
	flags.StringVar(&f.ports, "ports", "16384-65535", "the source ports that may be used")
	return cmd
}

// steering is what the flags ask for.
func (f *runFlags) steering() (c datapath.PathSourceConfig, err error) {
	codec, err := f.codec()
	if err != nil {
		return c, err
	}
	if codec.Parts().Fields == cflb.NoFields {
		return c, usageErrorf("--fields none: no packet chooses a path")
	}
	labels := codec.Parts().Fields.HasLabel()
	c.IPv6 = codec
	if !labels {
		c.IPv4 = codec
	}
	path, err := parseVia(f.via, f.hopLimit)
	if err != nil {
		return c, err
	}
	c.Rules = []datapath.PathRule{{Path: path}}
	probe := cflb.Packet{Src: netip.IPv6Unspecified(), Dst: netip.IPv6Unspecified(),
		Protocol: f.protocol, HasPorts: true}
	if _, err := codec.Encode(probe, path, 0); err != nil {
		return c, usageErrorf("--via %s: %w", f.via, err)
	}
	from, to, _ := strings.Cut(f.ports, "-")
	low, err1 := strconv.ParseUint(from, 10, 16)
	high, err2 := strconv.ParseUint(to, 10, 16)
	if err1 != nil || err2 != nil || low < 1 || high < low {
		return c, usageErrorf("--ports %s: write FROM-TO, like 16384-65535", f.ports)
	}
	c.PortsFrom, c.PortsTo = uint16(low), uint16(high)
	if labels {
		c.Interfaces, err = outerInterfaces()
		return c, err
	}
	return c, f.addSources(&c)
}

// outerInterfaces are all by which packets can leave this machine.
func outerInterfaces() (names []string, err error) {
	all, err := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 {
			names = append(names, i.Name)
		}
	}
	return names, err
}

// parseVia reads the choices of routers: the first receives packets with the hop limit.
func parseVia(text string, hopLimit uint8) (path []cflb.Hop, err error) {
	for i, word := range strings.Split(text, ",") {
		if word == "-" {
			continue
		}
		index, err := strconv.ParseUint(word, 10, 8)
		if err != nil || i >= int(hopLimit) {
			return nil, usageErrorf("--via %q: write the index of a next hop for each router, "+
				"like 1,0, or - where there is no choice", text)
		}
		path = append(path, cflb.Hop{HopLimit: hopLimit - uint8(i), Index: int(index)})
	}
	if len(path) == 0 {
		return nil, usageErrorf("--via %q: no router has a choice", text)
	}
	return path, nil
}

// addSources takes the addresses that the flags name, or those of the default routes.
func (f *runFlags) addSources(c *datapath.PathSourceConfig) error {
	sources := f.sources
	if len(sources) == 0 {
		for _, anywhere := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // nothing is sent
			if socket, err := net.Dial("udp", anywhere); err == nil {
				sources = append(sources, socket.LocalAddr().(*net.UDPAddr).IP.String())
				socket.Close()
			}
		}
	}
	for _, text := range sources {
		address, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			return usageErrorf("--source %q is no address", text)
		case address.Is4():
			c.Source4 = address
		default:
			c.Source6 = address
		}
	}
	if !c.Source4.IsValid() && !c.Source6.IsValid() {
		return errors.New("no address to open connections from: there is no default route; name " +
			"one with --source")
	}
	return nil
}

// runSteered runs the command in a cgroup of its own, to which the programs are attached.
func (a *app) runSteered(f runFlags, words []string) (err error) {
	config, err := f.steering()
	if err != nil {
		return err
	}
	command, err := nodeCommand(words, a.getenv("SHELL"))
	if err != nil {
		return err
	}
	root, _, err := linux.CgroupRoot()
	if err != nil {
		return err
	}
	group, err := linux.CreateCgroup(filepath.Join(root, fmt.Sprintf("sextant-path-%d",
		os.Getpid())))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Kill(), group.Remove()) }()
	source, err := datapath.SteerCgroup(group.Dir(), config)
	if err != nil {
		return err
	}
	defer source.Close()
	command.Stdin, command.Stdout, command.Stderr = rawInput(a.stdin), raw(a.stdout), raw(a.stderr)
	if err := linux.Start(command, nil, group); err != nil {
		return err
	}
	failed := exitOf(command.Wait())
	counted, err := source.Counters()
	if err != nil {
		return errors.Join(failed, err)
	}
	if counted.NoPort+counted.Bound > 0 || counted.Steered == 0 {
		a.say("path run: %d sockets took the path, %d found no free port or flow label, %d were "+
			"bound by the command", counted.Steered, counted.NoPort, counted.Bound)
	}
	return failed
}
