package config

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"time"

	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// codec reads and writes the scalars of one type, or of one use of it.
type codec struct {
	typ   reflect.Type
	parse func(string) (any, error)
	// sets a field to what parse returns
	set    func(into reflect.Value, text string) error
	text   func(any) string // for people, and for the canonical text where document is nil
	words  []string         // that are valid; nil: others are, too
	number bool             // written in decimal digits, without quotes
	bounds *bounds          // that follow from the type
	// document is the value in the canonical text: a text, a number or a truth value.
	document func(any) any
}

// A codecUse is a type and the as tag of the field that has it.
type codecUse struct {
	typ reflect.Type
	as  string
}

var codecs = map[codecUse]*codec{}

func codecOf(t reflect.Type, as string) *codec {
	if c := codecs[codecUse{t, as}]; c != nil {
		return c
	}
	return codecs[codecUse{t, ""}]
}

func register[T any](as string, parse func(string) (T, error), text func(T) string) *codec {
	c := &codec{
		typ:   reflect.TypeFor[T](),
		parse: func(s string) (any, error) { return parse(s) },
		set: func(into reflect.Value, s string) error {
			v, err := parse(s)
			if err == nil {
				*into.Addr().Interface().(*T) = v
			}
			return err
		},
		text: func(v any) string { return text(v.(T)) },
	}
	codecs[codecUse{c.typ, as}] = c
	return c
}

// registerWords registers a type of text of which only these values are valid.
func registerWords[T ~string](known ...T) {
	c := register("", func(s string) (T, error) { return T(s), nil },
		func(v T) string { return string(v) })
	for _, k := range known {
		c.words = append(c.words, string(k))
	}
}

// zeroText writes the zero value as nothing.
func zeroText[T interface {
	comparable
	String() string
}](v T) string {
	var zero T
	if v == zero {
		return ""
	}
	return v.String()
}

func itself(s string) (string, error) { return s, nil }

func init() {
	register("", itself, func(s string) string { return s })
	register("target", parseRouteTarget, func(s string) string { return s })
	register("etcd", parseEtcdEndpoint, func(s string) string { return s })
	register("controller", parseController, func(s string) string { return s })
	register("", ParseAddress, zeroText[netip.Addr])
	register("sid", ParseSID, zeroText[netip.Addr])
	register("", parsePrefix, zeroText[netip.Prefix])
	register("any", ParseAnyPrefix, zeroText[netip.Prefix])
	register("", ParseListener, zeroText[netip.AddrPort])
	register("bgp", parseBGPListener, zeroText[netip.AddrPort])
	register("", srv6.ParseBlock, func(b srv6.Block) string { return b.Prefix().String() })
	register("", parseBehavior, srv6.Behavior.String)
	register("", parseLocalCSID, func(id srv6.CSID) string {
		if id == 0 {
			return ""
		}
		return id.String()
	})
	register("", ParseLoad, Load.String)
	register("", ParsePortRange, PortRange.String)
	register("", ParseHopCounts, func(h HopCounts) string { return string(h) })
	register("", ParseVia, func(v Via) string { return string(v) })
	register("", parseStatusRange, StatusRange.String)
	register("", ParseWait, time.Duration.String)
	register("", parseBool, strconv.FormatBool).document = func(v any) any { return v }
	register("", flow.ParseSecret, func(s flow.Secret) string { return hex.EncodeToString(s[:]) })
	register("", flow.ParseFunction, flow.Function.String).words = flow.FunctionNames()
	register("port", ParsePort, FormatPort).document = portDocument
	register("check", parseCheckPort, FormatPort).document = portDocument
	registerNumbers()
	registerAllWords()
	registerTelemetry()
}

func registerNumbers() {
	c := register("", strconv.Atoi, strconv.Itoa)
	c.number, c.document = true, func(v any) any { return v }
	register("protocol", ParseIPProtocol, FormatIPProtocol)
	register("table", parseTable, TableText)
	register("rate", ParseRate, FormatRate)
	share := register("share", ParsePermille, FormatPermille)
	share.bounds = &bounds{0, 1000, "0 to 1"}
	share.document = func(v any) any { return float64(v.(int)) / 1000 }
}

func portDocument(v any) any {
	if port := v.(uint16); port != AnyPort {
		return int(port)
	}
	return FormatPort(AnyPort)
}

func registerAllWords() {
	registerWords(External, Internal, Mixed)
	registerWords(Auto, Native, Generic)
	registerWords(Carrier, SRH, SRHReduced)
	registerWords(TCP, UDP)
	registerWords(Always, Static, Dynamic, Average, Delay)
	registerWords(Up, Draining, Down, Maintenance)
	registerWords(PolicyOffer, PolicyShadow, PolicyECMP)
	registerWords(Rendezvous, Exact, Modulo)
	registerWords(ByIGP, ByDelay, ByTelemetry)
	registerWords(OrderByPath, OrderByLoad)
	registerWords(CopiedAll, CopiedSYN, CopiedData)
	registerWords(HMACStandard, HMACLinux)
	registerWords(HMACRequireNone, HMACRequireSRH, HMACRequireAll)
	registerWords(CheckTCP, CheckHTTP, CheckHTTPS, CheckGRPC, CheckExec)
	registerWords(StartUp, StartDown)
	registerWords(FailDrain, FailDown)
	registerWords(ActionPath, ActionSplitFlow, ActionSplitPacket, ActionMirror)
	registerWords(NotNumbered, NumberedInTLV, NumberedInSID)
	registerWords(ListUp, ListDown)
	registerWords(SourceFPM, SourceKernel, SourceBGP)
	registerWords(WithEBPF, WithKernel)
	registerWords(IPv4Unicast, IPv6Unicast, VPNv4, VPNv6, LinkState)
	registerWords(Withdraw, Keep)
	registerWords(AnnounceUp, AnnounceDraining, AnnounceNothing)
	registerWords(WhileAny, WhileHealthy)
	registerWords(ByKernel, ByXDP)
	registerWords(Measured, Random, OfFlow)
	registerWords[SelectorFields]("source-port", "flow-label", "ports", "flow-label+source-port",
		"flow-label+ports")
	registerWords[SelectorCipher]("feistel", "rc5", "skip32")
}

// textOf writes a scalar for people.
func (s *setting) textOf(v reflect.Value) string {
	if !s.list {
		return s.codec.text(v.Interface())
	}
	text := ""
	for i := range v.Len() {
		if i > 0 {
			text += " "
		}
		text += s.codec.text(v.Index(i).Interface())
	}
	return text
}

// isWord and isWithin say whether words and bounds permit the value of a scalar.
func (s *setting) isWord(v reflect.Value) bool {
	if len(s.words) == 0 {
		return true
	}
	if v.Kind() != reflect.String {
		return slices.Contains(s.words, s.codec.text(v.Interface()))
	}
	return slices.Contains(s.words, v.String())
}

func (s *setting) isWithin(v reflect.Value) bool {
	if s.bounds == nil || !v.CanInt() {
		return true
	}
	n := v.Int()
	return n >= s.bounds.low && n <= s.bounds.high || n == 0 && s.zero
}

// judge checks words and bounds of one scalar.
func (s *setting) judge(c *checker, where string, v reflect.Value) {
	if !s.isWord(v) {
		c.invalid(where, fmt.Sprintf("unknown %s %q", s.what(), v.String()),
			"write "+alternatives(s.words))
	}
	if s.isWithin(v) {
		return
	}
	mend := "write " + s.bounds.text
	if zero := s.tag.Get("zero"); zero != "" {
		mend += ", or 0 " + zero
	}
	c.invalid(where, fmt.Sprintf("%s %s is out of range", s.what(), s.codec.text(v.Interface())),
		mend)
}

// isSound reports whether words and bounds permit all values at and below an object. It is what
// mostly holds, and makes no texts, as tens of thousands of backends would.
func (o *object) isSound(v reflect.Value) bool {
	applies := o.applying(v)
	for _, s := range o.settings {
		if !s.restricts() || applies != nil && !applies(s.key) {
			continue
		}
		value := s.value(v)
		switch {
		case s.list:
			for i := range value.Len() {
				if !s.isSound(value.Index(i)) {
					return false
				}
			}
		case s.pointer:
			if !value.IsNil() && !s.isSound(value.Elem()) {
				return false
			}
		case s.codec != nil, s.tag.Get("present") == "always", !value.IsZero():
			if !s.isSound(value) {
				return false
			}
		}
	}
	return true
}

func (s *setting) isSound(v reflect.Value) bool {
	if s.object != nil {
		return s.object.isSound(v)
	}
	return s.isWord(v) && s.isWithin(v)
}

// settings checks words and bounds of all scalars at and below an object.
func (c *checker) settings(where string, o *object, v reflect.Value) {
	if o.isSound(v) {
		return
	}
	applies := o.applying(v)
	for _, s := range o.settings {
		if !s.restricts() || applies != nil && !applies(s.key) {
			continue
		}
		at, value := join(where, s.key), s.value(v)
		switch {
		case s.list:
			for i := range value.Len() {
				c.setting(fmt.Sprintf("%s[%d]", at, i), s, value.Index(i))
			}
		case s.pointer:
			if !value.IsNil() {
				c.setting(at, s, value.Elem())
			}
		case s.codec != nil, s.tag.Get("present") == "always", !value.IsZero():
			c.setting(at, s, value)
		}
	}
}

// restricts reports whether some values of the setting are not valid: most have no bounds and no
// fixed words.
func (s *setting) restricts() bool {
	return s.key != "" && (s.object != nil || s.bounds != nil || len(s.words) > 0)
}

// applying tells which keys have a meaning in an object; nil: all.
func (o *object) applying(v reflect.Value) func(key string) bool {
	if !o.selective {
		return nil
	}
	return v.Interface().(selective).applies
}

func (c *checker) setting(where string, s *setting, v reflect.Value) {
	if s.object != nil {
		c.settings(where, s.object, v)
		return
	}
	s.judge(c, where, v)
}
