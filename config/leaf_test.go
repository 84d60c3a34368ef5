package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Two valid texts for each codec that has no words.
var samples = map[codecUse][2]string{
	{reflect.TypeFor[string](), ""}: {"/a", "/b"},
}

func init() {
	for _, s := range []struct {
		use  codecUse
		text [2]string
	}{
		{useOf("string", "target"), [2]string{"64512:1", "64512:2"}},
		{useOf("string", "etcd"), [2]string{"http://[fd00:5e::3]:2379",
			"http://[fd00:5e::4]:2379"}},
		{useOf("string", "controller"), [2]string{"[fd00:5e::9]:9478", "[fd00:5e::a]:9478"}},
		{useOf("netip.Addr", ""), [2]string{"2001:db8::1", "2001:db8::2"}},
		{useOf("netip.Addr", "sid"), [2]string{"fcbb:bb00:1::", "fcbb:bb00:2::"}},
		{useOf("netip.Prefix", ""), [2]string{"fd00:1::/48", "fd00:2::/48"}},
		{useOf("netip.Prefix", "any"), [2]string{"192.0.2.0/24", "2001:db8::/32"}},
		{useOf("netip.AddrPort", ""), [2]string{"[::1]:1", "[::1]:2"}},
		{useOf("netip.AddrPort", "bgp"), [2]string{"[::]:179", "[::]:1179"}},
		{useOf("srv6.Block", ""), [2]string{"fcbb:bb00::/32", "fcbb:bb01::/32"}},
		{useOf("srv6.Behavior", ""), [2]string{"End.DT4", "End.OFFER"}},
		{useOf("srv6.CSID", ""), [2]string{"e046", "e047"}},
		{useOf("config.Load", ""), [2]string{"accept-queue", "pressure"}},
		{useOf("config.PortRange", ""), [2]string{"80", "80-90"}},
		{useOf("config.Via", ""), [2]string{"1,0", "0,1"}},
		{useOf("config.HopCounts", ""), [2]string{"2,2", "3"}},
		{useOf("config.StatusRange", ""), [2]string{"200", "200-299"}},
		{useOf("time.Duration", ""), [2]string{"1s", "2s"}},
		{useOf("bool", ""), [2]string{"false", "true"}},
		{useOf("flow.Secret", ""), [2]string{strings.Repeat("01", 16), strings.Repeat("02", 16)}},
		{useOf("uint16", "port"), [2]string{"80", "any"}},
		{useOf("uint16", "check"), [2]string{"80", "81"}},
		{useOf("uint16", "udp"), [2]string{"80", "81"}},
		{useOf("netip.AddrPort", "collector"), [2]string{"[::1]:1", "[::1]:2"}},
		{useOf("int", ""), [2]string{"3", "2"}},
		{useOf("int", "protocol"), [2]string{"udp", "tcp"}},
		{useOf("int", "table"), [2]string{"10", "main"}},
		{useOf("int", "rate"), [2]string{"10Mbit", "1Gbit"}},
		{useOf("int", "share"), [2]string{"0.25", "0.75"}},
	} {
		samples[s.use] = s.text
	}
}

func useOf(typ, as string) codecUse {
	for use := range codecs {
		if use.typ.String() == typ && use.as == as {
			return use
		}
	}
	panic("no codec of " + typ + " as " + as)
}

// sample is one of two values of a scalar.
func (s *setting) sample(t *testing.T, second bool) reflect.Value {
	t.Helper()
	i := 0
	if second {
		i = 1
	}
	text := ""
	switch both, known := samples[codecUse{s.codec.typ, s.tag.Get("as")}]; {
	case len(s.words) > 1:
		text = s.words[i]
	case s.bounds != nil && s.bounds.low > 3 && s.codec.number:
		text = fmt.Sprint(s.bounds.low + int64(i))
	case known:
		text = both[i]
	default:
		t.Fatalf("no sample of %s as %q, for key %s", s.codec.typ, s.tag.Get("as"), s.key)
	}
	value, err := s.codec.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return reflect.ValueOf(value).Convert(s.typ)
}

// fillAll gives an object every setting that it can have, and its lists one item.
func (o *object) fillAll(t *testing.T, v reflect.Value) {
	for _, s := range o.settings {
		if s.key == "" {
			continue
		}
		into := s.value(v)
		if s.pointer {
			into.Set(reflect.New(s.typ))
			into = into.Elem()
		}
		if s.list {
			into.Set(reflect.MakeSlice(into.Type(), 1, 1))
			into = into.Index(0)
		}
		if s.object != nil {
			s.object.fillAll(t, into)
			continue
		}
		into.Set(s.sample(t, false))
	}
}

// makeApply changes another setting of the object, so that the key has a meaning.
func (o *object) makeApply(t *testing.T, v reflect.Value, key string) {
	applies := func() bool {
		chosen, ok := v.Interface().(selective)
		return !ok || chosen.applies(key)
	}
	for _, s := range o.settings {
		if applies() {
			return
		}
		if s.codec == nil || s.list || s.key == key {
			continue
		}
		before := reflect.New(s.typ).Elem()
		before.Set(s.value(v))
		for _, word := range append([]string{""}, s.words...) {
			if s.typ.Kind() == reflect.String {
				s.value(v).SetString(word)
			} else {
				s.value(v).SetZero()
			}
			if applies() {
				return
			}
		}
		s.value(v).Set(before)
	}
	t.Fatalf("nothing gives key %s of %s a meaning", key, o.typ)
}

// TestEachLeafIsAChange changes one key of a node that has them all: the list of changes has that
// one, and the canonical text and the fingerprint are others. An item that is known by the key is
// another item.
func TestEachLeafIsAChange(t *testing.T) {
	full := func() *Node {
		n := &Node{}
		objectOf(reflect.TypeFor[Node](), "", "").fillAll(t, reflect.ValueOf(n).Elem())
		n.SecretFile = ""
		return n
	}
	leaves := 0
	root := objectOf(reflect.TypeFor[Node](), "", "")
	root.eachLeaf(reflect.ValueOf(full()).Elem(), "", nil, func(path string, steps []step) {
		leaves++
		t.Run(path, func(t *testing.T) {
			a, b := full(), full()
			var identity bool
			for _, n := range []*Node{a, b} {
				object, owner := root, reflect.ValueOf(n).Elem()
				for _, s := range steps[:len(steps)-1] {
					object, owner = s.setting.object, s.into(owner)
					identity = s.setting.list && s.setting.tag.Get("by") == ""
				}
				object.makeApply(t, owner, steps[len(steps)-1].setting.key)
			}
			leaf := steps[len(steps)-1]
			owner := reflect.ValueOf(b).Elem()
			for _, s := range steps[:len(steps)-1] {
				owner = s.into(owner)
			}
			leaf.into(owner).Set(leaf.setting.sample(t, true))
			checkOneChange(t, a, b, identity || leaf.setting.list)
		})
	})
	if leaves < 200 {
		t.Errorf("%d leaves", leaves)
	}
}

func checkOneChange(t *testing.T, a, b *Node, maybeItem bool) {
	t.Helper()
	changes := Diff(a, b)
	replaced := maybeItem && len(changes) >= 2 && changes[0].Operation != Modify
	if len(changes) != 1 && !replaced {
		t.Errorf("changes %v", changes)
	}
	for _, c := range changes {
		if c.Operation == Modify && c.From == c.To {
			t.Errorf("change without a difference: %s", c)
		}
	}
	if again := Diff(b, b.Clone()); len(again) > 0 {
		t.Errorf("a clone differs: %v", again)
	}
	x, errX := Fingerprint(a)
	y, errY := Fingerprint(b)
	if errX != nil || errY != nil || x == y {
		t.Errorf("fingerprints %s and %s (%v, %v)", x, y, errX, errY)
	}
}

// step leads from an object to a value of one of its settings: the first item of a list.
type step struct{ setting *setting }

func (s step) into(owner reflect.Value) reflect.Value {
	v := s.setting.value(owner)
	switch {
	case s.setting.list:
		return v.Index(0)
	case s.setting.pointer:
		return v.Elem()
	}
	return v
}

func (o *object) eachLeaf(v reflect.Value, where string, steps []step, visit func(string, []step)) {
	for _, s := range o.settings {
		if s.key == "" {
			continue
		}
		path, way := join(where, s.key), append(append([]step(nil), steps...), step{s})
		if s.object == nil {
			visit(path, way)
			continue
		}
		s.object.eachLeaf(way[len(way)-1].into(v), path, way, visit)
	}
}

// TestCodecsSayWhatAndHint: what a codec refuses becomes a problem with both of its parts,
// whichever package read the text.
func TestCodecsSayWhatAndHint(t *testing.T) {
	texts := []string{"", "x", "::", "1::/129", "fcbb:bb00:1::/32", "::/32", "10.0.0.0/32", "-1",
		"70000", "memory:x", "pressure:", "apache:x", "65536-1", "0", strings.Repeat("0", 32),
		strings.Repeat("z", 32)}
	for use, c := range codecs {
		refused := 0
		for _, text := range texts {
			_, err := c.parse(text)
			if err == nil || c.number { // the YAML number was read before
				continue
			}
			refused++
			p := problemOf(err)
			if p.Text == "" || p.Mend == "" || p.Mend == otherHint ||
				strings.Contains(p.Text, "; ") {
				t.Errorf("%s as %q refuses %q: %q, and mends it: %q", use.typ, use.as, text, p.Text,
					p.Mend)
			}
		}
		if refused == 0 && !c.number && use.typ.Kind() != reflect.String {
			t.Errorf("%s as %q refuses nothing", use.typ, use.as)
		}
	}
}
