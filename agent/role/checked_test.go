package role_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/role"
	"sextant/config"
)

// What was told of checks is read while the next ones end: it stays what it was.
func TestCheckedViewStays(t *testing.T) {
	c := &role.Checked{Check: &config.Check{Rise: 1, Fall: 1}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.Take(health.Result{At: at, Took: time.Millisecond})
	told := c.View()
	want := *told
	want.LastCheck = &at
	c.Take(health.Result{At: at.Add(time.Hour), Took: time.Second})
	if diff := cmp.Diff(want, *told, cmp.AllowUnexported(api.Durations{})); diff != "" {
		t.Errorf("what was told is another one later (-told +is):\n%s", diff)
	}
	if now := c.View(); !now.LastCheck.Equal(at.Add(time.Hour)) {
		t.Errorf("the last check was at %s", now.LastCheck)
	}
}
