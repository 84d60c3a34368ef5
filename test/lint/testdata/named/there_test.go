package named

import "testing"

func TestThere(*testing.T) {}
