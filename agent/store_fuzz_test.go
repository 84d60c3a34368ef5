package agent

import (
	"encoding/json"
	"testing"

	"sextant/agent/state"
)

// FuzzParseKept reads state files of any bytes: what is accepted is written and read as the same.
func FuzzParseKept(f *testing.F) {
	f.Add(
		[]byte(
			`{"file":"x","node":"node: a","edgeServices":{"[::1]:80/tcp":1},"sids":{"2001:db8::1":65535}}`))
	f.Add([]byte(`{"hostServices":{"a":1,"b":1}}`))
	f.Add([]byte(`{"epoch":7,"tables":[1,2],"away":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := state.ParseKept(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatalf("%+v can't be written: %v", k, err)
		}
		again, err := state.ParseKept(text)
		if err != nil {
			t.Fatalf("%s is refused: %v", text, err)
		}
		if second, err := json.Marshal(again); err != nil || string(second) != string(text) {
			t.Fatalf("%s became %s (%v)", text, second, err)
		}
	})
}
