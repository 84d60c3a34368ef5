package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (r *Routing) clone() *Routing {
	if r == nil {
		return nil
	}
	c := Routing{VRFs: slices.Clone(r.VRFs)}
	for i := range c.VRFs {
		c.VRFs[i].Interfaces = slices.Clone(c.VRFs[i].Interfaces)
	}
	if r.FPM != nil {
		fpm := *r.FPM
		c.FPM = &fpm
	}
	return &c
}

// Equal reports whether nothing differs; nil is another than an empty section.
func (r *Routing) Equal(other *Routing) bool {
	if r == nil || other == nil {
		return r == other
	}
	var d differ
	d.routing(r, other)
	return len(d.changes) == 0
}

func (d *differ) routing(a, b *Routing) {
	a, b = role(d, "routing", a, b, unsaid[Routing], func(*Routing) *Routing { return &Routing{} })
	if a == nil {
		return
	}
	d.modify("routing", "fpm", a.FPM.String(), b.FPM.String())
	named(d, a.VRFs, b.VRFs,
		func(v VRF) string { return v.Name },
		func(v VRF) (string, string) { return "vrf " + v.Name, v.String() },
		func(title string, a, b VRF) { d.modify(title, "is", a.String(), b.String()) })
}

// String writes where zebra is listened to; "" where it is not.
func (f *FPM) String() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s, settle %v", f.Listen, f.Settle)
}

// String writes what becomes of a VRF's routes.
func (v VRF) String() string {
	text := "routes of " + string(v.Source)
	if v.Table != 0 {
		text += " in table " + TableText(v.Table)
	}
	if v.Datapath == WithEBPF {
		return text + " for the edge"
	}
	text += fmt.Sprintf(" for the kernel in table %d, shadow %d at %s", v.Install, v.Shadow.Table, v.Shadow.SID)
	if v.Shadow.Keep != 0 {
		text += fmt.Sprintf(" kept %v", v.Shadow.Keep)
	}
	if v.Buckets != 0 {
		text += fmt.Sprintf(", %d buckets", v.Buckets)
	}
	if len(v.Interfaces) > 0 {
		text += ", from " + strings.Join(v.Interfaces, " ")
	}
	return text
}

// TableText writes a table as the node file has it.
func TableText(table int) string {
	if table == mainTable {
		return "main"
	}
	return strconv.Itoa(table)
}

// The types below are the shape of routing in the file.

type documentRouting struct {
	FPM  *documentFPM  `yaml:"fpm,omitempty" json:"fpm,omitempty"`
	VRFs []documentVRF `yaml:"vrfs" json:"vrfs"`
}

type documentFPM struct {
	Listen string `yaml:"listen" json:"listen"`
	Settle string `yaml:"settle" json:"settle"`
}

type documentVRF struct {
	Name       string             `yaml:"name" json:"name"`
	Source     RouteSource        `yaml:"source" json:"source"`
	Table      string             `yaml:"table,omitempty" json:"table,omitempty"`
	Datapath   Datapath           `yaml:"datapath" json:"datapath"`
	Install    string             `yaml:"install,omitempty" json:"install,omitempty"`
	Interfaces []string           `yaml:"interfaces,flow,omitempty" json:"interfaces,omitempty"`
	Buckets    int                `yaml:"buckets,omitempty" json:"buckets,omitempty"`
	Shadow     *documentShadowVRF `yaml:"shadow,omitempty" json:"shadow,omitempty"`
}

type documentShadowVRF struct {
	Table string `yaml:"table" json:"table"`
	SID   string `yaml:"sid" json:"sid"`
	Keep  string `yaml:"keep" json:"keep"`
}

func routingDocument(r *Routing) *documentRouting {
	if r == nil {
		return nil
	}
	d := &documentRouting{VRFs: each(r.VRFs, vrfDocument)}
	if r.FPM != nil {
		d.FPM = &documentFPM{r.FPM.Listen.String(), r.FPM.Settle.String()}
	}
	return d
}

func vrfDocument(v VRF) documentVRF {
	d := documentVRF{Name: v.Name, Source: v.Source, Datapath: v.Datapath, Interfaces: v.Interfaces, Buckets: v.Buckets}
	if v.Table != 0 {
		d.Table = TableText(v.Table)
	}
	if v.Install != 0 {
		d.Install = strconv.Itoa(v.Install)
	}
	if v.Shadow != (ShadowVRF{}) {
		d.Shadow = &documentShadowVRF{strconv.Itoa(v.Shadow.Table), addressText(v.Shadow.SID), v.Shadow.Keep.String()}
	}
	return d
}
