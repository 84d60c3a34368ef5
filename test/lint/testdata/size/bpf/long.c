struct config {
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
	int member;
};

static int declared(int argument);

int table[] = {
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
	1,
};

SEC("xdp")
int long_program(struct xdp_md *ctx,
		 int second)
{
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
	return 0;
}

int short_one(void)
{
	return 0;
}

		/* wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww */
