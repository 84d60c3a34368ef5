SEC("xdp.frags")
int arrive(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("tc")
int leave(struct __sk_buff *skb)
{
	return TC_ACT_UNSPEC;
}

SEC("sockops")
int sockets(struct bpf_sock_ops *ops)
{
	return 1;
}

struct {
} table SEC(".maps");

char _license[] SEC("license") = "GPL";
