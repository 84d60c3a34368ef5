// Package rtnetlink reads and writes the messages of Linux and FRRouting about routes and next
// hops: rtnetlink (rtnetlink(7), linux/rtnetlink.h, linux/nexthop.h) with requests and answers, as
// far as routes over SRv6 need it (linux/seg6_iptunnel.h, linux/seg6_local.h), and the frames in
// which FRRouting's zebra sends it over TCP (the forwarding plane manager's protocol, fpm/fpm.h).
// It works on bytes alone; they are in the byte order of this machine, as the kernel's are, and
// zebra's that runs on the same one.
package rtnetlink
