package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Equal reports whether nothing differs; nil is another than an empty section.
func (r *Routing) Equal(other *Routing) bool {
	if r == nil || other == nil {
		return r == other
	}
	return len(difference("routing", r, other)) == 0
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
	text += fmt.Sprintf(" for the kernel in table %d, shadow %d at %s", v.Install, v.Shadow.Table,
		v.Shadow.SID)
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
