package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var addresses = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})

// A body is one value: what stands behind it is no second thought that is overlooked.
func TestBodiesAreWhole(t *testing.T) {
	for body, ok := range map[string]bool{
		"":                                       true,
		" \n":                                    true,
		`{"weight": 2}`:                          true,
		`{"weight": 2} ` + "\n":                  true,
		`{"weight": 2}{"weight": 3}`:             false,
		`{"weight": 2} x`:                        false,
		`{"weight": 2}]`:                         false,
		`{"weight": 2`:                           false,
		`{"wait": 2}`:                            false,
		`{"weight": 2}` + strings.Repeat(" ", 9): true,
	} {
		request := httptest.NewRequest("PUT", "/", strings.NewReader(body))
		if err := ReadJSON(request, &BackendSpec{}); (err == nil) != ok {
			t.Errorf("%q: %v, want it to be read: %v", body, err, ok)
		} else if e := new(Error); err != nil && (!errors.As(err, &e) || e.Code != Invalid) {
			t.Errorf("%q: %v is no error of the client", body, err)
		}
	}
}

// A body is read as json.Unmarshal, which takes whole texts alone, reads it, or refused.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"weight": 2, "state": "up"}`))
	f.Add([]byte(`{"weight": 2}{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var read, want BackendSpec
		if ReadJSON(httptest.NewRequest("PUT", "/", bytes.NewReader(body)), &read) != nil {
			return
		}
		if len(bytes.TrimSpace(body)) == 0 {
			return
		}
		if err := json.Unmarshal(body, &want); err != nil || !cmp.Equal(read, want, addresses) {
			t.Errorf("%q is read as %+v; json.Unmarshal: %+v, %v", body, read, want, err)
		}
	})
}
