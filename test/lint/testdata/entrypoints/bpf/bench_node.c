SEC("xdp")
int bench(struct xdp_md *ctx)
{
	return 0;
}
