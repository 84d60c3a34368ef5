package main

import (
	"testing"

	"fixture/lib"
)

func TestOracle(t *testing.T) { lib.Oracle() }
