package lib_test

import (
	"testing"

	"fixture/lib"
)

func TestTested(t *testing.T) { lib.Tested() }
