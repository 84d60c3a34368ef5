package main

import (
	"bufio"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sextant/config"
)

func (a *app) ipvsadmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ipvsadm ARGUMENTS",
		Short: "Translate an ipvsadm command line into the commands of this program",
		Long: `Translate an ipvsadm command line into the commands of this program, and print them; nothing is run. With -R, lines like
those of "ipvsadm -S -n" are read from standard input.

Real servers are named by their SID instead of their address: -r fcbb:bb00:1::. Saved rules have addresses: "sextant convert
ipvsadm" makes a node file of them, with a map of the SIDs. Warnings on stderr name what has no counterpart.

  -A -E -D  add, change or delete a service      -a -e -d  add, change or delete a real server
  -t -u     VIP:port of a TCP or UDP service     -r        SID of a real server
  -s        scheduler                            -w        weight
  -L -C -S -Z  list, clear, save, zero           -g -i -m -p  forwarding method, persistence: not needed`,
		Example: `  sextant ipvsadm -A -t 192.0.2.80:80 -s wlc
  sextant ipvsadm -a -t 192.0.2.80:80 -r fcbb:bb00:1:: -w 2`,
		Annotations: seeAlso("sextant service add", "sextant backend add",
			"sextant convert ipvsadm"),
		Args: cobra.ArbitraryArgs, DisableFlagParsing: true, // the letters are ipvsadm's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				return cmd.Help()
			}
			t, err := parseIPVS(args)
			if err != nil {
				return usageError{err}
			}
			if t.command == 'R' {
				return a.restoreIPVS()
			}
			return a.printIPVS(t)
		},
	}
}

// ipvs is an ipvsadm command line.
type ipvs struct {
	command   byte // its letter
	endpoint  config.Endpoint
	server    string
	scheduler string
	weight    *int
	rates     bool
	ignored   []string
}

// ipvsCommands are the letters of commands, by their long names.
var ipvsCommands = map[string]byte{
	"add-service": 'A', "edit-service": 'E', "delete-service": 'D', "clear": 'C', "restore": 'R',
	"save":       'S',
	"add-server": 'a', "edit-server": 'e', "delete-server": 'd', "list": 'L', "zero": 'Z',
}

// ipvsOptions are the letters of options, by their long names.
var ipvsOptions = map[string]byte{
	"tcp-service": 't', "udp-service": 'u', "scheduler": 's', "real-server": 'r', "weight": 'w',
	"numeric": 'n', "persistent": 'p',
	"netmask":    'M',
	"gatewaying": 'g', "ipip": 'i', "masquerading": 'm', "fwmark-service": 'f', "u-threshold": 'x',
	"l-threshold": 'y', "ipv6": '6',
	"sched-flags": 'b', "connection": 'c', "pe": 'P', "ops": 'o',
}

// ipvsValues are the options that take a value; a persistence may have one.
const ipvsValues = "tusrwpMfxybP"

// parseIPVS reads letters as ipvsadm does, joined or not, and long names.
func parseIPVS(args []string) (*ipvs, error) {
	p := &ipvs{}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		letters, err := ipvsLetters(p, word)
		if err != nil {
			return nil, err
		}
		for i, letter := range letters {
			value := ""
			if strings.ContainsRune(ipvsValues, letter) {
				rest := string(letters[i+1:])
				switch {
				case rest != "" && letter != 'p':
					value = rest
				case len(args) > 0 && (letter != 'p' || !strings.HasPrefix(args[0], "-")):
					value, args = args[0], args[1:]
				case letter != 'p':
					return nil, fmt.Errorf("-%c needs a value", letter)
				}
				if err := p.take(letter, value); err != nil {
					return nil, err
				}
				if rest != "" && letter != 'p' {
					break
				}
				continue
			}
			if err := p.take(letter, ""); err != nil {
				return nil, err
			}
		}
	}
	return p, p.complete()
}

// ipvsLetters are those of one word; long names become theirs.
func ipvsLetters(p *ipvs, word string) ([]rune, error) {
	name, long := strings.CutPrefix(word, "--")
	if !long {
		letters, is := strings.CutPrefix(word, "-")
		if !is || letters == "" {
			return nil, fmt.Errorf("unexpected word %q; ipvsadm has letters like -A -t "+
				"192.0.2.80:80", word)
		}
		return []rune(letters), nil
	}
	if letter, known := ipvsCommands[name]; known {
		return []rune{rune(letter)}, nil
	}
	if letter, known := ipvsOptions[name]; known {
		return []rune{rune(letter)}, nil
	}
	switch name {
	case "stats", "exact", "sort", "nosort", "timeout", "daemon", "thresholds", "persistent-conn":
		return nil, nil // ways to list
	case "rate":
		p.rates = true
		return nil, nil
	}
	return nil, fmt.Errorf("unknown option --%s", name)
}

// take notes one letter with its value.
func (p *ipvs) take(letter rune, value string) (err error) {
	switch letter {
	case 'A', 'E', 'D', 'C', 'R', 'S', 'a', 'e', 'd', 'L', 'l', 'Z':
		if p.command != 0 {
			return fmt.Errorf("both -%c and -%c are commands; give one", p.command, letter)
		}
		p.command = byte(letter)
	case 't', 'u':
		p.endpoint, err = ipvsEndpoint(letter, value)
	case 's':
		p.scheduler = value
	case 'r':
		p.server = value
	case 'w':
		weight, err := strconv.Atoi(value)
		if err != nil || weight < 0 || weight > 65535 {
			return fmt.Errorf("weight %q is not a number from 0 to 65535", value)
		}
		p.weight = &weight
	case 'f':
		return fmt.Errorf("services by firewall mark have no counterpart; name the service by -t " +
			"or -u")
	case 'n', '6':
	case 'p', 'M', 'g', 'i', 'm', 'x', 'y', 'b', 'c', 'P', 'o':
		p.ignored = append(p.ignored, "-"+string(letter))
	default:
		return fmt.Errorf("unknown option -%c", letter)
	}
	return err
}

func ipvsEndpoint(letter rune, text string) (config.Endpoint, error) {
	e := config.Endpoint{Protocol: config.TCP}
	if letter == 'u' {
		e.Protocol = config.UDP
	}
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		vip, addrErr := netip.ParseAddr(strings.Trim(text, "[]"))
		if addrErr != nil {
			return e, fmt.Errorf("%q is not VIP:port; write it like 192.0.2.80:80 or "+
				"[2001:db8::80]:80, port 0 for all", text)
		}
		address = netip.AddrPortFrom(vip, 0)
	}
	e.VIP, e.Port = address.Addr(), address.Port()
	return e, nil
}

// complete checks that a command has what it is about.
func (p *ipvs) complete() error {
	switch {
	case p.command == 0:
		return fmt.Errorf("no command is given; one of -A -E -D -a -e -d -L -C -S -R -Z")
	case strings.IndexByte("AEDaed", p.command) >= 0 && !p.endpoint.VIP.IsValid():
		return fmt.Errorf("-%c needs a service: -t VIP:port or -u VIP:port", p.command)
	case strings.IndexByte("aed", p.command) >= 0 && p.server == "":
		return fmt.Errorf("-%c needs a real server: -r SID", p.command)
	}
	return nil
}

// serviceName is the name of a service that has none in ipvsadm.
func (p *ipvs) serviceName() string {
	name := fmt.Sprintf("%s-%s-%s", p.endpoint.Protocol, p.endpoint.VIP,
		config.FormatPort(p.endpoint.Port))
	return strings.NewReplacer(":", "-", ".", "-").Replace(name)
}

// sid reads the real server, which is named by its SID here.
func (p *ipvs) sid() (netip.Addr, error) {
	text := p.server
	if address, err := netip.ParseAddrPort(text); err == nil {
		text = address.Addr().String()
	}
	sid, err := config.ParseSID(strings.Trim(text, "[]"))
	if err != nil {
		return sid, fmt.Errorf("real server %s: a backend is named by the SID of its host (see "+
			"there: sextant sid list); "+
			"write -r and the SID, like -r fcbb:bb00:1:: -w 1, or name all SIDs in a map: sextant "+
			"convert ipvsadm FILE --map FILE", p.server)
	}
	return sid, nil
}

func backendName(sid netip.Addr) string {
	return strings.NewReplacer(":", "-").Replace("sid-" + strings.TrimRight(sid.String(), ":"))
}

// translate writes the commands, and what they leave out.
func (p *ipvs) translate() (commands, notes []string, err error) {
	if len(p.ignored) > 0 {
		notes = append(notes, strings.Join(p.ignored, " ")+
			" left out: packets go by SRv6, straight back from the server, and stay with their "+
			"server without a table")
	}
	name := p.serviceName()
	service := fmt.Sprintf("%s --role edge", name)
	switch p.command {
	case 'A':
		flags, note := schedulerFlags(p.scheduler)
		notes = append(notes, note...)
		commands = append(commands,
			fmt.Sprintf("sextant service add %s --vip %s --protocol %s --port %s%s", service,
				p.endpoint.VIP, p.endpoint.Protocol, config.FormatPort(p.endpoint.Port), flags))
	case 'E':
		flags, note := schedulerFlags(p.scheduler)
		notes = append(notes, note...)
		if flags != "" {
			commands = append(commands, "sextant service set "+service+flags)
		}
	case 'D':
		commands = append(commands, "sextant service delete "+service)
	case 'a', 'e', 'd':
		return p.translateServer(name, notes)
	case 'L', 'l':
		commands = []string{"sextant service list -o wide", "sextant backend list -o wide"}
		if p.rates {
			commands = []string{"sextant top"}
		}
	case 'C':
		commands = []string{"for service in $(sextant service list --role edge -o name); do " +
			"sextant service delete $service --role edge; done"}
	case 'S':
		commands = []string{"sextant config show"}
	case 'Z':
		notes = append(notes, "counters are never set back; differences are shown by: sextant "+
			"monitor")
	}
	return commands, notes, nil
}

func (p *ipvs) translateServer(service string, notes []string) ([]string, []string, error) {
	sid, err := p.sid()
	if err != nil {
		return nil, nil, err
	}
	name, weight := backendName(sid), ""
	if p.weight != nil {
		weight = fmt.Sprintf(" --weight %d", *p.weight)
	}
	drained := p.weight != nil && *p.weight == 0
	switch {
	case p.command == 'd':
		drain, remove := "sextant backend drain %s %s --wait", "sextant backend delete %s %s"
		return []string{fmt.Sprintf(drain, service, name), fmt.Sprintf(remove, service, name)},
			notes, nil
	case p.command == 'e' && drained:
		return []string{fmt.Sprintf("sextant backend drain %s %s", service, name)}, notes, nil
	case p.command == 'e':
		return []string{fmt.Sprintf("sextant backend set %s %s --state up%s", service, name,
			weight)}, notes, nil
	}
	return []string{fmt.Sprintf("sextant backend add %s %s --sid %s%s", service, name, sid,
		weight)}, notes, nil
}

// schedulerFlags are the settings that come nearest to a scheduler.
func schedulerFlags(scheduler string) (flags string, notes []string) {
	switch scheduler {
	case "":
		return "", nil
	case "mh", "sh", "dh":
		return " --candidates 1", []string{"scheduler " + scheduler +
			": one candidate by consistent hash of the flow"}
	case "lc", "wlc", "sed", "nq", "lblc", "lblcr", "twos", "fo", "ovf":
		return " --candidates 2", []string{"scheduler " + scheduler +
			": of two candidates, the first takes the connection unless it is busy; see accept " +
			"in the hosts' node files"}
	}
	return "", []string{"scheduler " + scheduler +
		": connections are spread by weight over consistent hash"}
}

func (a *app) printIPVS(p *ipvs) error {
	commands, notes, err := p.translate()
	if err != nil {
		return usageError{err}
	}
	for _, note := range notes {
		a.say("%s", note)
	}
	for _, command := range commands {
		fmt.Fprintln(a.stdout, command)
	}
	return nil
}

// restoreIPVS translates saved rules, one per line.
func (a *app) restoreIPVS() error {
	lines := bufio.NewScanner(a.stdin)
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		p, err := parseIPVS(words)
		if err == nil {
			err = a.printIPVS(p)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return lines.Err()
}
