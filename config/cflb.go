package config

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"sextant/packet/cflb"
)

// CFLB is the role of a router whose sources choose among its equal-cost next hops: controllable
// per-flow load balancing. The next hops are those of the kernel's routes.
type CFLB struct {
	Interfaces []XDPInterface `key:"interfaces" without:"side" item:"cflb interface %s"`
	// number of the router, different at each of the network: by it routers in a row hash
	// differently
	Router int `key:"router" range:"0 4294967295"`
	// who takes the next hop that was chosen
	Forwarding Forwarding `key:"forwarding" default:"kernel"`
	// absolute path of a file with the network's key
	KeyFile string `key:"keyFile"`
	// what KeyFile holds; nil as long as it has not been read
	Key CFLBKey `secret:"key"`
	// nil: routes of the family are left to the kernel
	IPv4 *Selector `key:"ipv4" title:"cflb ipv4"`
	IPv6 *Selector `key:"ipv6" title:"cflb ipv6"`
}

// Selector is how the sources of a network write paths into packets of one family. It is the same
// at all sources and routers.
type Selector struct {
	// the header fields in which they do
	Fields SelectorFields `key:"fields" yaml:"fields"`
	// how many next hops a digit can name
	Radix int `key:"radix" yaml:"radix" default:"16" range:"2 256"`
	// digits of a selector; 0: all that the fields hold
	Length int            `key:"length" yaml:"length" omit:"zero" range:"1 52" zero:"for all that the fields hold"`
	Cipher SelectorCipher `key:"cipher" yaml:"cipher" default:"feistel"`
	// digits are taken of numbers that no source encodes, too, as in the published algorithm
	Modulo bool `key:"modulo" yaml:"modulo" omit:"zero"`
}

// CFLBKey is the key of a network with controllable load balancing.
type CFLBKey []byte

// Forwarding is who sends packets to the next hop that was chosen.
type Forwarding string

// The ways of forwarding.
const (
	ByKernel Forwarding = "kernel" // a program at TC tells it the next hop
	ByXDP    Forwarding = "xdp"    // a program at XDP, what it can; the kernel the rest
)

// SelectorFields are names of controllable fields.
type SelectorFields string

// SelectorCipher is the name of a cipher.
type SelectorCipher string

// ParseCFLBKey reads what a keyFile holds: 32 hexadecimal digits. The error never repeats the text.
func ParseCFLBKey(text string) (CFLBKey, error) {
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != cflb.KeyLength {
		return nil, fmt.Errorf("the key is not %d hexadecimal digits; make it with: openssl rand "+
			"-hex %d", 2*cflb.KeyLength, cflb.KeyLength)
	}
	return b, nil
}

// SelectorOf is how sources write paths to an address; nil: they do not.
func (r *CFLB) SelectorOf(to netip.Addr) *Selector {
	if to.Is4() {
		return r.IPv4
	}
	return r.IPv6
}

// Codec prepares what encodes and decodes the selectors of a family. That of a family without
// selectors hashes.
func (r *CFLB) Codec(ipv6 bool) (*cflb.Codec, error) {
	to := netip.IPv4Unspecified()
	if ipv6 {
		to = netip.IPv6Unspecified()
	}
	s := r.SelectorOf(to)
	if s == nil {
		return cflb.New(cflb.Parameters{})
	}
	return s.codec(r.Key)
}

func (s *Selector) codec(key CFLBKey) (*cflb.Codec, error) {
	p := cflb.Parameters{Radix: s.Radix, Length: s.Length}
	copy(p.Key[:], key)
	if s.Modulo {
		p.Range = cflb.ModuloRange
	}
	var err error
	if p.Fields, err = cflb.ParseFields(string(s.Fields)); err != nil {
		return nil, err
	}
	if p.Cipher, err = cflb.ParseCipher(string(s.Cipher)); err != nil {
		return nil, err
	}
	return cflb.New(p)
}

func (r *CFLB) faces() []Face {
	return facesOf(r.Interfaces, Face{Plain: r.Forwarding == ByKernel, Sends: true})
}

func (r *CFLB) check(c *checker) {
	c.some("cflb.interfaces", len(r.Interfaces), "there is no interface on which packets arrive",
		`add "- {name: eth0}"`)
	c.xdpInterfaces("cflb", r.Interfaces)
	c.directory("cflb.keyFile", r.KeyFile)
	if r.IPv4 == nil && r.IPv6 == nil {
		c.invalid("cflb", "no family is controlled",
			`add "ipv4: {fields: source-port}" or "ipv6: {fields: flow-label}"`)
	}
	c.selector("cflb.ipv4", r.IPv4)
	c.selector("cflb.ipv6", r.IPv6)
	if r.IPv4 != nil && r.IPv4.hasLabel() {
		c.invalid("cflb.ipv4.fields", "IPv4 packets have no flow label",
			"write source-port or ports")
	}
}

// UnmarshalYAML sets defaults before what a file says.
func (s *Selector) UnmarshalYAML(read func(any) error) error {
	type plain Selector
	*s = fresh[Selector]()
	return read((*plain)(s))
}

// Faults checks an object of that path.
func (s *Selector) Faults(path string) []*Problem {
	c := &checker{}
	c.settings(path, objectOf(reflect.TypeFor[Selector](), "", ""), reflect.ValueOf(s).Elem())
	c.selector(path, s)
	return c.problems
}

// hasLabel says whether IPv6 flow labels are controllable.
func (s *Selector) hasLabel() bool { return strings.Contains(string(s.Fields), "flow-label") }

// selector checks parameters of a family that words and bounds permit.
func (c *checker) selector(where string, s *Selector) {
	sound := objectOf(reflect.TypeFor[Selector](), "", "").isSound
	if s == nil || !sound(reflect.ValueOf(s).Elem()) {
		return
	}
	if _, err := s.codec(nil); err != nil {
		c.invalid(where, err.Error(), "write others, the same at all sources and routers")
	}
}
