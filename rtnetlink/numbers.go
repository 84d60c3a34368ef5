package rtnetlink

// Numbers of the kernel's interface: linux/netlink.h and linux/rtnetlink.h.
const (
	headerLength    = 16 // struct nlmsghdr
	sizeofRoute     = 12 // struct rtmsg
	sizeofNextHop   = 8  // struct rtnexthop
	sizeofAttribute = 4  // struct rtattr

	flagRequest = 0x1    // NLM_F_REQUEST
	flagAppend  = 0x800  // NLM_F_APPEND
	flagNested  = 0x8000 // NLA_F_NESTED

	familyAny, familyIPv4, familyIPv6 = 0, 2, 10

	routeCloned                  = 0x200 // RTM_F_CLONED
	typeUnicast                  = 1     // RTN_UNICAST
	scopeUniverse                = 0     // RT_SCOPE_UNIVERSE
	tableUnspecified, tableLocal = 0, 255

	rtaDestination, rtaPriority, rtaMultipath = 1, 6, 9
	rtaTable, rtaEncapType, rtaEncap          = 15, 21, 22
	rtaNextHop                                = 30 // RTA_NH_ID
)
