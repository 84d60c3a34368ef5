package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/config"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// golden compares text with a file, or rewrites the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, go test -update rewrites it):\n%s", file, diff)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("glob %s: %d files, error %v", pattern, len(list), err)
	}
	return list
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func load(t *testing.T, name string) *config.Node {
	t.Helper()
	file := filepath.Join("testdata", "valid", name+".yaml")
	n, err := config.Parse(file, read(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestParseErrors(t *testing.T) {
	for _, file := range files(t, "testdata/errors/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			n, err := config.Parse(filepath.Base(file), read(t, file))
			if err == nil || n != nil {
				t.Fatalf("Parse = %v, %v; want no node and an error", n, err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

func TestParseErrorsAreTyped(t *testing.T) {
	_, err := config.Parse("x.yaml", []byte("node: a\nstate: b\n"))
	var list config.Errors
	var one *config.Error
	if !errors.As(err, &list) || !errors.As(err, &one) || !errors.Is(err, config.ErrInvalid) {
		t.Fatalf("error %#v is not Errors of Error of ErrInvalid", err)
	}
}

func TestErrorsNeverShowTheSecret(t *testing.T) {
	const secret = "0011223344556677889900aabbccddee"
	for _, text := range []string{
		"{node: 'a b', secret: " + secret + ", x: 1}",
		"secret: '" + secret + "ff'\n",
		"{secret: " + secret + ", secret: " + secret + "}",
		"secret: ffffffffffffffffffffffffffffffff\nsecret: " + secret + "\n",
		"secert: " + secret + "\n", "secret: \"" + secret + "\n",
	} {
		_, err := config.Parse("x.yaml", []byte(text))
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Parse(%q) = %v; want an error without the secret", text, err)
		}
	}
}

func TestMarshalIsCanonical(t *testing.T) {
	for _, file := range files(t, "testdata/valid/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			n, err := config.Parse(file, read(t, file))
			if err != nil {
				t.Fatal(err)
			}
			text, err := config.Marshal(n)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", string(text))
		})
	}
}

// corpus reads files as seeds of a fuzz test.
func corpus(f *testing.F, pattern string) [][]byte {
	f.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil {
		f.Fatal(err)
	}
	seeds := make([][]byte, len(list))
	for i, file := range list {
		if seeds[i], err = os.ReadFile(file); err != nil {
			f.Fatal(err)
		}
	}
	return seeds
}
