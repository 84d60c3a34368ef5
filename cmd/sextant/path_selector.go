package main

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sextant/packet/cflb"
)

// selectorFlags are the parameters of a network with controllable load balancing, and a packet of a
// flow.
type selectorFlags struct {
	fields, cipher, key string
	radix, length       int
	modulo              bool
	protocol            uint8
}

func (f *selectorFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.fields, "fields", cflb.BothPorts.String(),
		"controllable fields: source-port, flow-label, ports, "+
			"flow-label+source-port or flow-label+ports")
	flags.IntVar(&f.radix, "radix", 16, "how many next hops a digit can name, 2 to 256")
	flags.IntVar(&f.length, "length", 0,
		"how many digits a selector has; 0: all that the fields hold")
	flags.StringVar(&f.cipher, "cipher", cflb.Feistel.String(),
		"feistel; for two ports also rc5 or skip32")
	flags.StringVar(&f.key, "key", "", "the network's key, 32 hexadecimal digits")
	flags.BoolVar(&f.modulo, "modulo", false,
		"take digits of numbers that no source encodes too, as routers do that know "+
			"the published algorithm alone")
	flags.Uint8Var(&f.protocol, "protocol", 6, "number of the protocol: 6 is TCP, 17 UDP")
	complete(cmd, "fields", "source-port", "flow-label", "ports", "flow-label+source-port",
		"flow-label+ports")
	complete(cmd, "cipher", "feistel", "rc5", "skip32")
}

func (f *selectorFlags) codec() (*cflb.Codec, error) {
	p := cflb.Parameters{Radix: f.radix, Length: f.length}
	var err error
	if p.Fields, err = cflb.ParseFields(f.fields); err != nil {
		return nil, usageErrorf("--fields: %w", err)
	}
	if p.Cipher, err = cflb.ParseCipher(f.cipher); err != nil {
		return nil, usageErrorf("--cipher: %w", err)
	}
	key, err := hex.DecodeString(f.key)
	if err != nil || len(key) != cflb.KeyLength {
		return nil, usageErrorf("--key %q: the network's key has %d hexadecimal digits", f.key,
			2*cflb.KeyLength)
	}
	p.Key = [cflb.KeyLength]byte(key)
	if f.modulo {
		p.Range = cflb.ModuloRange
	}
	codec, err := cflb.New(p)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	return codec, nil
}

// packet reads the ends of a flow, ADDRESS:PORT each.
func (f *selectorFlags) packet(ends []string) (cflb.Packet, error) {
	p := cflb.Packet{Protocol: f.protocol, HasPorts: true}
	for i, end := range ends {
		at, err := netip.ParseAddrPort(end)
		if err != nil {
			return p, usageErrorf("%q: write ADDRESS:PORT, an IPv6 address in brackets, and port "+
				"0 where the selector is to be", end)
		}
		if i == 0 {
			p.Src, p.SrcPort = at.Addr(), at.Port()
		} else {
			p.Dst, p.DstPort = at.Addr(), at.Port()
		}
	}
	if p.Src.Is4() != p.Dst.Is4() {
		return p, usageErrorf("%s and %s are of two IP versions", p.Src, p.Dst)
	}
	return p, nil
}

// warn prints what the parameters do worse than others would.
func (a *app) warnSelector(codec *cflb.Codec) {
	for _, warning := range codec.Warnings() {
		a.say("warning: %s", warning)
	}
}

const encodeLong = `Find ports or flow labels with which a flow takes a path through routers
with controllable load balancing (CFLB).

Each --hop says what one router on the way does: HOPLIMIT:INDEX, the hop limit (or time to live)
with which it receives the packet, 64 at the first router as a rule, and the number of the next
hop that it shall take, from 0. Routers with one next hop need none. Fields, radix, length,
cipher and key are those of the network.`

func (a *app) pathEncode() *cobra.Command {
	var f selectorFlags
	var hops []string
	var first uint64
	var most int
	cmd := &cobra.Command{
		Use:   "encode SOURCE DESTINATION --key KEY --hop HOPLIMIT:INDEX...",
		Short: "Find the ports or flow labels that take a path",
		Long:  encodeLong,
		Example: "  sextant path encode 10.0.0.2:0 10.3.1.3:443 --fields source-port --radix 4 " +
			"--hop 64:1 --hop 63:0 " +
			"--key 000102030405060708090a0b0c0d0e0f",
		Annotations: seeAlso("sextant path decode", "sextant path assign"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := parseHops(hops)
			if err != nil {
				return err
			}
			return a.encodePath(f, args, path, first, most)
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&hops, "hop", nil, "a choice on the path, HOPLIMIT:INDEX")
	cmd.Flags().Uint64Var(&first, "first", 0,
		"the number of the first selector to show; a random one spreads flows that share a path")
	cmd.Flags().IntVar(&most, "count", 1, "how many selectors to show")
	return cmd
}

func parseHops(texts []string) ([]cflb.Hop, error) {
	if len(texts) == 0 {
		return nil, usageErrorf("missing --hop: what the routers on the path choose")
	}
	var path []cflb.Hop
	for _, text := range texts {
		hopLimit, index, _ := strings.Cut(text, ":")
		h, err := strconv.ParseUint(hopLimit, 10, 8)
		n, err2 := strconv.ParseUint(index, 10, 16)
		if err != nil || err2 != nil {
			return nil, usageErrorf("--hop %s: write HOPLIMIT:INDEX, like 64:1", text)
		}
		path = append(path, cflb.Hop{HopLimit: uint8(h), Index: int(n)})
	}
	return path, nil
}

type selectorItem struct {
	Source          netip.Addr `json:"source"`
	SourcePort      uint16     `json:"sourcePort"`
	Destination     netip.Addr `json:"destination"`
	DestinationPort uint16     `json:"destinationPort"`
	FlowLabel       *uint32    `json:"flowLabel,omitempty"`
}

type selectorResult struct {
	Variants uint64         `json:"variants"`
	Items    []selectorItem `json:"items"`
}

func (a *app) encodePath(f selectorFlags, ends []string, path []cflb.Hop, first uint64,
	most int) error {
	codec, err := f.codec()
	if err != nil {
		return err
	}
	p, err := f.packet(ends)
	if err != nil {
		return err
	}
	packets, err := codec.Selectors(p, path, first)
	if err != nil {
		return usageErrorf("%w", err)
	}
	a.warnSelector(codec)
	result := selectorResult{Variants: codec.Variants(path)}
	t := table{columns: []string{"SOURCE", "DESTINATION", "FLOW-LABEL"}}
	var names []string
	for steered := range packets {
		if len(result.Items) >= most {
			break
		}
		item := selectorItem{steered.Src, steered.SrcPort, steered.Dst, steered.DstPort, nil}
		label := ""
		if codec.Parts().Fields.HasLabel() {
			item.FlowLabel, label = &steered.FlowLabel, fmt.Sprintf("0x%05x", steered.FlowLabel)
		}
		source := netip.AddrPortFrom(steered.Src, steered.SrcPort).String()
		destination := netip.AddrPortFrom(steered.Dst, steered.DstPort).String()
		result.Items = append(result.Items, item)
		t.add(source, destination, orDash(label))
		names = append(names, strings.TrimSpace(source+" "+destination+" "+label))
	}
	return a.show(view{value: result, tables: tables{t}, names: names})
}

func (a *app) pathDecode() *cobra.Command {
	var f selectorFlags
	var label, router uint32
	var hopLimit uint8
	var hops, nextHops int
	cmd := &cobra.Command{
		Use:   "decode SOURCE DESTINATION --key KEY",
		Short: "Show which next hops routers take for a flow",
		Long: `Decode a flow's ports or flow label as routers with controllable load balancing (CFLB) do: for each hop limit with which a router can receive it, the digit that it reads,
and the next hop that it takes of a number of equal ones.`,
		Example: "  sextant path decode 10.0.0.2:7298 10.3.1.3:443 --fields source-port --radix " +
			"4 --next-hops 2 " +
			"--key 000102030405060708090a0b0c0d0e0f",
		Annotations: seeAlso("sextant path encode"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := f.packet(args)
			if err != nil {
				return err
			}
			p.FlowLabel, p.HopLimit = label, hopLimit
			return a.decodePath(f, p, router, hops, nextHops)
		},
	}
	f.add(cmd)
	cmd.Flags().Uint32Var(&label, "flow-label", 0, "the IPv6 flow label")
	cmd.Flags().Uint8Var(&hopLimit, "hop-limit", 64, "the hop limit at the first router")
	cmd.Flags().IntVar(&hops, "hops", 4, "how many routers there are")
	cmd.Flags().IntVar(&nextHops, "next-hops", 2, "how many equal next hops each router has")
	cmd.Flags().Uint32Var(&router, "router",
		0, "the number of the router, which matters if it hashes")
	return cmd
}

type choiceItem struct {
	HopLimit uint8  `json:"hopLimit"`
	Position int    `json:"position"`
	NextHop  int    `json:"nextHop"`
	Choice   string `json:"choice"`
}

type choiceResult struct {
	Items []choiceItem `json:"items"`
}

func (a *app) decodePath(f selectorFlags, p cflb.Packet, router uint32, hops, nextHops int) error {
	codec, err := f.codec()
	if err != nil {
		return err
	}
	if hops < 1 || hops > int(p.HopLimit) {
		return usageErrorf("--hops %d: a packet of hop limit %d can meet 1 to %d routers", hops,
			p.HopLimit, p.HopLimit)
	}
	if nextHops < 1 || nextHops > cflb.RadixMax {
		return usageErrorf("--next-hops %d: a router has 1 to %d", nextHops, cflb.RadixMax)
	}
	weights := make([]uint32, nextHops)
	for i := range weights {
		weights[i] = 1
	}
	group, err := codec.NewGroup(weights)
	if err != nil {
		return usageErrorf("--next-hops: %w", err)
	}
	a.warnSelector(codec)
	var result choiceResult
	t := table{columns: []string{"HOP-LIMIT", "POSITION", "NEXT-HOP", "CHOICE"}}
	var names []string
	for range hops {
		index, choice := codec.NextHop(p, router, group)
		item := choiceItem{p.HopLimit, codec.Position(p.HopLimit), index, choice.String()}
		result.Items = append(result.Items, item)
		t.add(p.HopLimit, item.Position, index, item.Choice)
		names = append(names, fmt.Sprintf("%d:%d", p.HopLimit, index))
		p.HopLimit--
	}
	return a.show(view{value: result, tables: tables{t}, names: names})
}
