package datapath

import (
	"path/filepath"
	"testing"
)

func TestBenchFlags(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		passes, repeat int
		rows, file     string
		right          bool
	}{
		{9, 1 << 18, "", "", true},
		{1, 1, "^edge, IPv", filepath.Join(folder, "rows.json"), true},
		{0, 1, "", "", false},
		{-1, 1, "", "", false},
		{1, 0, "", "", false},
		{1, 1<<32 + 1, "", "", false}, // the kernel would be told 1
		{1, 1, "(", "", false},
		{1, 1, "", filepath.Join(folder, "none", "rows.json"), false},
		{1, 1, "", folder, false},
	} {
		if err := checkBench(c.passes, c.repeat, c.rows, c.file); (err == nil) != c.right {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
