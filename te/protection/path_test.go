package protection_test

import (
	"testing"

	"sextant/te/protection"
)

func TestLinkText(t *testing.T) {
	for text, want := range map[string]protection.Link{
		"R1>R2":     {From: "R1", To: "R2"},
		"R1>R2#1":   {From: "R1", To: "R2", Number: 1},
		"a>b>c":     {From: "a>b", To: "c"},
		"R1>room#a": {From: "R1", To: "room#a"},
	} {
		if got, ok := protection.ParseLink(text); !ok || got != want || got.String() != text {
			t.Errorf("%s is %+v, %v, written %s; want %+v", text, got, ok, got, want)
		}
	}
	for _, text := range []string{"", "R1", ">R2", "R1>", "R1>#1"} {
		if got, ok := protection.ParseLink(text); ok {
			t.Errorf("%q is the link %+v", text, got)
		}
	}
}
