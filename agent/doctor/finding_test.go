package doctor_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"sextant/agent/doctor"
	"sextant/linux/facts"
)

// Twenty findings of a kind are listed; of more, nineteen and how many others there are.
func TestManyFindingsOfAKind(t *testing.T) {
	for missing, listed := range map[int]int{20: 20, 21: 20, 300: 20} {
		var more strings.Builder
		known := healthy()
		for i := range missing {
			sid := fmt.Sprintf("fcbb:bb00:%x::", 0x100+i)
			fmt.Fprintf(&more, ", {name: far%03d, sid: %q}", i, sid)
			known.Routes[netip.MustParseAddr(sid)] = facts.Route{}
		}
		one := `{name: web2, sid: "fcbb:bb00:2::"}`
		node := parseText(t, strings.Replace(nodeText, one, one+more.String(), 1))
		list := doctor.Diagnose(node, known, "v1")
		if len(list) != listed {
			t.Errorf("%d backends without a route: %d findings, want %d", missing, len(list),
				listed)
			continue
		}
		last, on, what := list[listed-1], "far019", "there is no route to its SID fcbb:bb00:113::"
		if missing > listed {
			on, what = "others", fmt.Sprintf("%d more findings like the last one", missing-19)
		}
		if last.Code != "sid_route" || last.On != on || last.What != what {
			t.Errorf("%d backends without a route: the last finding is %+v, want %s: %s", missing,
				last, on, what)
		}
	}
}
