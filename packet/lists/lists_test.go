package lists_test

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"sextant/packet/lists"
)

func TestMap(t *testing.T) {
	if got := lists.Map([]int{3, 1}, strconv.Itoa); !slices.Equal(got, []string{"3", "1"}) {
		t.Errorf("the list is %q", got)
	}
	if got := lists.Map(nil, strconv.Itoa); got == nil {
		t.Error("of no list, nil is made: JSON would have null")
	}
}

func TestJoin(t *testing.T) {
	of := []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("192.0.2.1")}
	if got := lists.Join(of, " and "); got != "::1 and 192.0.2.1" {
		t.Errorf("the text is %q", got)
	}
}
