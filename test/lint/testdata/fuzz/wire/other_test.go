package wire

import "testing"

func TestTrailer(t *testing.T) { ParseTrailer(nil) }
