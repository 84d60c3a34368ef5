package convert

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"sextant/config"
)

// IPVS reads what "ipvsadm -S -n" prints: a service or a real server a line.
func IPVS(text string) (*Rules, error) {
	r := &Rules{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) > 0 && words[0] == "ipvsadm" {
			words = words[1:]
		}
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := r.ipvsLine(number, words); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return r, nil
}

// ipvsLine is one line: -A or -a with its options.
func (r *Rules) ipvsLine(number int, words []string) error {
	command, options := words[0], map[string]string{}
	for i := 1; i < len(words); i++ {
		option, known := ipvsOptions[words[i]]
		if !known {
			return fmt.Errorf("unknown option %q; want what ipvsadm -S -n prints", words[i])
		}
		value := ""
		if option.value && i+1 < len(words) {
			i++
			value = words[i]
		}
		options[option.letter] = value
	}
	if _, marked := options["f"]; marked {
		r.note(number, "a service by firewall mark has no counterpart; name its address and ports")
		return nil
	}
	protocol, at := config.TCP, options["t"]
	if udp, is := options["u"]; is {
		protocol, at = config.UDP, udp
	}
	if _, is := options["sctp"]; is {
		r.note(number, "SCTP is not balanced")
		return nil
	}
	endpoint, err := endpointOf(at, protocol)
	if err != nil {
		return err
	}
	switch command {
	case "-A", "--add-service":
		r.ipvsService(number, endpoint, options)
		return nil
	case "-a", "--add-server":
		return r.ipvsServer(number, endpoint, options)
	}
	return fmt.Errorf("unknown command %q; want -A or -a, as ipvsadm -S -n prints", command)
}

// ipvsOptions are the options of saved rules, with their short forms; value: a word follows.
var ipvsOptions = map[string]struct {
	letter string
	value  bool
}{
	"-t": {"t", true}, "--tcp-service": {"t", true}, "-u": {"u", true},
	"--udp-service":  {"u", true},
	"--sctp-service": {"sctp", true}, "-f": {"f", true}, "--fwmark-service": {"f", true},
	"-s": {"s", true}, "--scheduler": {"s", true}, "-p": {"p", true}, "--persistent": {"p", true},
	"-r": {"r", true}, "--real-server": {"r", true}, "-w": {"w", true}, "--weight": {"w", true},
	"-m": {"m", false}, "--masquerading": {"m", false}, "-g": {"g", false},
	"--gatewaying": {"g", false}, "-i": {"i", false}, "--ipip": {"i", false},
	"-M": {"M", true}, "--netmask": {"M", true}, "-x": {"x", true}, "--u-threshold": {"x", true},
	"-y": {"y", true}, "--l-threshold": {"y", true}, "-b": {"b", true},
	"--sched-flags": {"b", true},
	"-o":            {"o", false}, "--ops": {"o", false}, "--pe": {"pe", true}, "-6": {"6", false},
	"--ipv6": {"6", false}, "--tun-type": {"tun", true}, "--tun-port": {"tun", true},
}

func (r *Rules) ipvsService(number int, e config.Endpoint, options map[string]string) {
	r.Services = append(r.Services, Service{Endpoint: e, Line: number})
	r.noteScheduler(number, options["s"])
	if seconds, is := options["p"]; is {
		r.notePersistence(number, seconds)
	}
	for _, letter := range []string{"pe", "o", "b"} {
		if _, is := options[letter]; is {
			r.note(number, "option -%s is not carried over", letter)
		}
	}
}

// noteScheduler says what becomes of a scheduler.
func (r *Rules) noteScheduler(line int, scheduler string) {
	switch scheduler {
	case "", "rr", "wrr", "mh", "sh", "roundrobin", "static-rr", "source", "random":
		// flows are spread by weights, each always to the same chain
	default:
		r.note(line, "scheduler %s: the servers' agents choose by their own load (service "+
			"hunting), "+
			"the edge by weights alone", scheduler)
	}
}

func (r *Rules) notePersistence(line int, seconds string) {
	r.note(line, "persistence (%s s) is not carried over: connections of one client go to several "+
		"servers", seconds)
}

func (r *Rules) ipvsServer(number int, e config.Endpoint, options map[string]string) error {
	if len(r.Services) == 0 || r.Services[len(r.Services)-1].Endpoint != e {
		return fmt.Errorf("a real server of %s, which is not the service above", e)
	}
	at, err := endpointOf(options["r"], e.Protocol)
	if err != nil {
		return err
	}
	server := Server{Address: at.VIP, Port: at.Port, Weight: 1, Line: number}
	if text, is := options["w"]; is {
		if server.Weight, err = strconv.Atoi(text); err != nil || server.Weight < 0 ||
			server.Weight > 65535 {
			return fmt.Errorf("weight %q is out of range; write 0 to 65535", text)
		}
	}
	server.quiesce()
	for letter, what := range map[string]string{"x": "upper", "y": "lower"} {
		if text := options[letter]; text != "" && text != "0" {
			r.note(number, "the %s threshold of %s connections is not carried over; a host's "+
				"acceptance policy bounds them", what, text)
		}
	}
	if _, nat := options["m"]; nat {
		r.noteNAT(number)
	}
	last := &r.Services[len(r.Services)-1]
	last.Servers = append(last.Servers, server)
	return nil
}

// noteNAT is said once.
func (r *Rules) noteNAT(line int) {
	const text = "masquerading (NAT): here packets keep the VIP as destination; give each server " +
		"the VIP on its loopback, and the agent's role host"
	for _, n := range r.Notes {
		if n.Text == text {
			return
		}
	}
	r.note(line, text)
}

// quiesce is weight 0: no new connections, and those that there are go on.
func (s *Server) quiesce() {
	if s.Weight == 0 {
		s.Weight, s.Draining = 1, true
	}
}

// endpointOf reads ADDRESS:PORT, [ADDRESS]:PORT or ADDRESS; port 0 is any.
func endpointOf(text string, protocol config.Protocol) (config.Endpoint, error) {
	e := config.Endpoint{Protocol: protocol}
	at, err := netip.ParseAddrPort(text)
	if err == nil {
		e.VIP, e.Port = at.Addr(), at.Port()
		return e, nil
	}
	if e.VIP, err = netip.ParseAddr(strings.Trim(text, "[]")); err != nil {
		return e, fmt.Errorf("%q is no address and port in digits", text)
	}
	return e, nil
}
