package stubs

import "testing"

func TestSkips(t *testing.T) {
	t.Skip()
	t.SkipNow()
	t.Skip("flaky")
	t.Skipf("%v", errStub)
	t.Skip("the kernel has no VRF devices (CONFIG_NET_VRF)")
	t.Skipf("needs root: %v", errStub)
	t.Run("inner", func(t *testing.T) { t.Skip("slow") })
}
