package agent

var (
	_ = (*edgeRole)(nil)
	_ = (*hostRole)(nil)
	_ = (*straysRole)(nil)
)
