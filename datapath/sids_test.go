package datapath

import (
	"net/netip"
	"strings"
	"testing"

	"sextant/packet/srv6"
)

func TestLocalSIDsLongestPrefixFirst(t *testing.T) {
	table, err := localSIDs([]LocalSID{
		{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"), Behavior: srv6.EndOFFER},
		{Prefix: netip.MustParsePrefix("fcbb:bb00:1:d46::/64"), Behavior: srv6.EndDT46},
		{Prefix: netip.MustParsePrefix("2001:db8:51d::1/128"), Behavior: srv6.EndDT6},
	})
	must(t, err)
	for i, want := range []srv6.Behavior{srv6.EndDT6, srv6.EndDT46, srv6.EndOFFER} {
		if table[i].Behavior != behaviors[want] {
			t.Errorf("place %d: behaviour %d, want %s", i, table[i].Behavior, want)
		}
	}
	if table[3] != (localSID{}) {
		t.Errorf("the table does not end behind the last SID: %+v", table[3])
	}
}

func TestLocalSIDsRefuses(t *testing.T) {
	one := LocalSID{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"), Behavior: srv6.EndOFFER}
	many := make([]LocalSID, sidsMax+1)
	for i := range many {
		many[i] = one
	}
	foreign := one
	foreign.Behavior = srv6.End
	for _, test := range []struct {
		sids []LocalSID
		want string
	}{
		{many, "17 SIDs; at most 16"},
		{[]LocalSID{foreign}, "no behaviour End"},
	} {
		if _, err := localSIDs(test.sids); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d SIDs: %v, want %q", len(test.sids), err, test.want)
		}
	}
}
