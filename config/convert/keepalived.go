package convert

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"sextant/config"
)

// block is a line of keepalived.conf with what it has in braces.
type block struct {
	words []string
	below []block
	line  int
}

// parseBlocks reads words, and blocks in braces, up to the brace that ends them.
func parseBlocks(lines []string, at *int, inside bool) ([]block, error) {
	var list []block
	begun := *at
	for *at < len(lines) {
		number := *at + 1
		line, _, _ := strings.Cut(lines[*at], "#")
		line, _, _ = strings.Cut(line, "!")
		line = strings.TrimSpace(line)
		*at++
		if line == "" {
			continue
		}
		if line == "}" {
			if !inside {
				return nil, fmt.Errorf("line %d: a brace ends nothing", number)
			}
			return list, nil
		}
		opens := strings.HasSuffix(line, "{")
		words := strings.Fields(strings.TrimSuffix(line, "{"))
		if len(words) == 0 && opens && len(list) > 0 { // the brace has a line of its own
			words, list = list[len(list)-1].words, list[:len(list)-1]
		}
		one := block{words: words, line: number}
		if opens {
			var err error
			if one.below, err = parseBlocks(lines, at, true); err != nil {
				return nil, err
			}
		}
		list = append(list, one)
	}
	if inside {
		return nil, fmt.Errorf("line %d: the braces of this block do not end", begun)
	}
	return list, nil
}

// Keepalived reads the virtual servers of keepalived.conf.
func Keepalived(text string) (*Rules, error) {
	at := 0
	blocks, err := parseBlocks(strings.Split(text, "\n"), &at, false)
	if err != nil {
		return nil, err
	}
	r, groups := &Rules{}, map[string][]block{}
	for _, b := range blocks {
		if b.words[0] == "virtual_server_group" && len(b.words) == 2 {
			groups[b.words[1]] = b.below
		}
	}
	for _, b := range blocks {
		switch b.words[0] {
		case "virtual_server":
			if err := r.virtualServer(b, groups); err != nil {
				return nil, err
			}
		case "vrrp_instance", "vrrp_sync_group", "vrrp_script":
			r.note(b.line, "%s is not needed: edges announce the VIPs by BGP, all at the same time",
				strings.Join(b.words, " "))
		case "include":
			r.note(b.line, "%s is not read; convert that file too", strings.Join(b.words, " "))
		case "global_defs", "virtual_server_group", "static_ipaddress", "static_routes":
		default:
			r.note(b.line, "%s is not carried over", b.words[0])
		}
	}
	return r, nil
}

// virtualServer is one service, or one for each endpoint of a group.
func (r *Rules) virtualServer(b block, groups map[string][]block) error {
	protocol := config.TCP
	for _, one := range b.below {
		if one.words[0] == "protocol" && len(one.words) == 2 {
			switch strings.ToUpper(one.words[1]) {
			case "UDP":
				protocol = config.UDP
			case "SCTP":
				r.note(one.line, "SCTP is not balanced")
				return nil
			}
		}
	}
	if len(b.words) == 3 && b.words[1] == "group" {
		members, known := groups[b.words[2]]
		if !known {
			return fmt.Errorf("line %d: there is no virtual_server_group %s", b.line, b.words[2])
		}
		for _, m := range members {
			if m.words[0] == "fwmark" {
				r.note(m.line, "a firewall mark has no counterpart; name addresses and ports")
				continue
			}
			if err := r.endpointServer(b, m.words, protocol, m.line); err != nil {
				return err
			}
		}
		return nil
	}
	if len(b.words) == 3 && b.words[1] == "fwmark" {
		r.note(b.line, "a firewall mark has no counterpart; name addresses and ports")
		return nil
	}
	return r.endpointServer(b, b.words[1:], protocol, b.line)
}

func (r *Rules) endpointServer(b block, words []string, protocol config.Protocol, line int) error {
	e, err := addressAndPort(words, protocol)
	if err != nil {
		return fmt.Errorf("line %d: %w", line, err)
	}
	s := Service{Endpoint: e, Line: line}
	delay := time.Duration(0)
	for _, one := range b.below {
		value := strings.Join(one.words[1:], " ")
		switch one.words[0] {
		case "delay_loop":
			delay, err = seconds(value)
		case "lb_algo", "lvs_sched":
			r.noteScheduler(one.line, value)
		case "lb_kind", "lvs_method":
			if value == "NAT" {
				r.noteNAT(one.line)
			}
		case "persistence_timeout":
			r.notePersistence(one.line, value)
		case "real_server":
			err = r.realServer(one, &s)
		case "sorry_server":
			r.note(one.line, "the sorry server %s is not carried over", value)
		case "virtualhost":
			if s.Check == nil {
				s.Check = &Check{}
			}
			s.Check.Host = value
		case "protocol", "quorum", "alpha", "omega", "ops", "hysteresis", "ha_suspend":
		default:
			r.note(one.line, "%s is not carried over", strings.Join(one.words, " "))
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", one.line, err)
		}
	}
	if s.Check != nil && s.Check.Kind == "" {
		s.Check = nil
	}
	if s.Check != nil && s.Check.Interval == 0 {
		s.Check.Interval = delay
	}
	r.Services = append(r.Services, s)
	return nil
}

func (r *Rules) realServer(b block, s *Service) error {
	e, err := addressAndPort(b.words[1:], s.Endpoint.Protocol)
	if err != nil {
		return err
	}
	server := Server{Address: e.VIP, Port: e.Port, Weight: 1, Line: b.line}
	for _, one := range b.below {
		switch name := one.words[0]; name {
		case "weight":
			if len(one.words) != 2 {
				return fmt.Errorf("weight has no number")
			}
			if server.Weight, err = strconv.Atoi(one.words[1]); err != nil || server.Weight < 0 ||
				server.Weight > 65535 {
				return fmt.Errorf("weight %q is out of range; write 0 to 65535", one.words[1])
			}
		case "TCP_CHECK", "HTTP_GET", "SSL_GET":
			c, err := r.keepalivedCheck(one)
			if err != nil {
				return err
			}
			r.agree(s, c, one.line)
		case "inhibit_on_failure":
		default:
			r.note(one.line, "%s is not carried over", name)
		}
	}
	server.quiesce()
	s.Servers = append(s.Servers, server)
	return nil
}

// agree makes a server's check the service's, or notes that it is another one.
func (r *Rules) agree(s *Service, c Check, line int) {
	host := ""
	if s.Check != nil {
		host = s.Check.Host
	}
	c.Host = cmp.Or(c.Host, host)
	if c.Kind == config.CheckTCP {
		c.Host = ""
	}
	switch {
	case s.Check == nil || s.Check.Kind == "":
		s.Check = &c
	case *s.Check != c:
		r.note(line, "the check differs from that of the server before; a service has one check, "+
			"and the first one is taken")
	}
}

var keepalivedKinds = map[string]config.CheckKind{"TCP_CHECK": config.CheckTCP,
	"HTTP_GET": config.CheckHTTP, "SSL_GET": config.CheckHTTPS}

func (r *Rules) keepalivedCheck(b block) (Check, error) {
	c := Check{Kind: keepalivedKinds[b.words[0]]}
	urls := 0
	for _, one := range b.below {
		value, err := strings.Join(one.words[1:], " "), error(nil)
		switch one.words[0] {
		case "connect_timeout":
			c.Timeout, err = seconds(value)
		case "delay_loop":
			c.Interval, err = seconds(value)
		case "connect_port":
			var port uint64
			port, err = strconv.ParseUint(value, 10, 16)
			c.Port = uint16(port)
		case "retry", "nb_get_retry":
			c.Fall, err = strconv.Atoi(value)
			c.Fall++ // the first one and its repetitions
		case "url":
			if urls++; urls > 1 {
				r.note(one.line, "a check asks for one URL; this one is not carried over")
				continue
			}
			r.url(one, &c)
		case "virtualhost":
			c.Host = value
		case "delay_before_retry", "warmup":
		default:
			r.note(one.line, "%s of the check is not carried over", one.words[0])
		}
		if err != nil {
			return c, fmt.Errorf("%s %q is no number that fits", one.words[0], value)
		}
	}
	return c, nil
}

func (r *Rules) url(b block, c *Check) {
	for _, one := range b.below {
		value := strings.Join(one.words[1:], " ")
		switch one.words[0] {
		case "path":
			c.Path = value
		case "status_code":
			c.Status = value
		case "virtualhost":
			c.Host = value
		default:
			r.note(one.line, "%s of the URL is not carried over", one.words[0])
		}
	}
}

// addressAndPort reads "192.0.2.80 443", or an address alone.
func addressAndPort(words []string, protocol config.Protocol) (config.Endpoint, error) {
	e := config.Endpoint{Protocol: protocol}
	if len(words) == 0 || len(words) > 2 {
		return e, fmt.Errorf("want an address and a port, not %q", strings.Join(words, " "))
	}
	var err error
	if e.VIP, err = netip.ParseAddr(words[0]); err != nil {
		return e, fmt.Errorf("%q is no IP address", words[0])
	}
	if len(words) == 2 {
		port, err := strconv.ParseUint(words[1], 10, 16)
		if err != nil {
			return e, fmt.Errorf("%q is no port", words[1])
		}
		e.Port = uint16(port)
	}
	return e, nil
}

// seconds reads a number of seconds, which may have a point.
func seconds(text string) (time.Duration, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 || n > 3600 {
		return 0, fmt.Errorf("%q is no number of seconds from 0 to 3600", text)
	}
	return time.Duration(n * float64(time.Second)), nil
}
