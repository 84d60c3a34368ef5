package health

import "testing"

// Whatever a server answers is a status or an error.
func FuzzGRPCStatus(f *testing.F) {
	for _, seed := range []string{"\x00\x00\x00\x00\x02\x08\x01", "\x00\x00\x00\x00\x00", "",
		"\x01\x00\x00\x00\x02\x08\x01", "\x00\x00\x00\x00\x01\x08",
		"\x00\x00\x00\x00\x04\x12\x00\x08\x02", "\x00\x00\x00\x00\x01\x0b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		status, err := grpcStatus(body)
		if err == nil && (len(body) < 5 || body[0] != 0) || err != nil &&
			(status != 0 || err.Error() == "") {
			t.Fatalf("%x: status %d, error %v", body, status, err)
		}
	})
}

func TestGRPCStatus(t *testing.T) {
	for body, want := range map[string]uint64{
		"\x00\x00\x00\x00\x02\x08\x01":         1,
		"\x00\x00\x00\x00\x00":                 0, // the default of the field
		"\x00\x00\x00\x00\x04\x12\x00\x08\x02": 2, // behind a field that nobody knows
	} {
		if got, err := grpcStatus([]byte(body)); err != nil || got != want {
			t.Errorf("%x: %d, %v; want %d", body, got, err, want)
		}
	}
}
