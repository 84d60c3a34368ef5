package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

// A small file that stands for a million values by aliases takes nothing of an agent's memory if
// its sender may only read.
func TestAliasesOfReaders(t *testing.T) {
	node, err := config.Parse("node.yaml", []byte(nodeFile))
	if err != nil {
		t.Fatal(err)
	}
	handler := api.NewHandler(&memory{node: node})
	var text strings.Builder
	text.WriteString(nodeFile[:strings.Index(nodeFile, "  services:")] + "  services:\n" +
		"    - name: s\n      vip: 192.0.2.80\n      port: 1\n      backends: &all\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "        - {name: b%d, sid: \"fcbb:bb00:%x::\"}\n", i, i+1)
	}
	for i := range 100 {
		fmt.Fprintf(&text, "    - {name: s%d, vip: 192.0.2.80, port: %d, backends: *all}\n", i, i+2)
	}
	for role, refused := range map[api.Permission]bool{api.Read: true, api.Operate: true,
		api.Admin: false} {
		r := httptest.NewRequest("POST", "/v1/diff", strings.NewReader(text.String()))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(api.WithAccess(r.Context(), api.NewAccess(role))))
		if got := w.Code == http.StatusBadRequest && strings.Contains(w.Body.String(),
			"under 262144 values") && !strings.Contains(w.Body.String(),
			"invalid IP"); got != refused {
			t.Errorf("role %s: %d %.300s", role, w.Code, w.Body)
		}
	}
}
