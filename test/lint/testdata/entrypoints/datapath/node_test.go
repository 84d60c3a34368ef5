package datapath

import "testing"

var _, _ = fuzzes(FuzzArrive, "arrive"), fuzzes(nil, "sockets")

func FuzzArrive(f *testing.F) {}
