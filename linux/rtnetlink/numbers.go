package rtnetlink

// Numbers of the kernel's interface: linux/netlink.h and linux/rtnetlink.h.
const (
	headerLength    = 16 // struct nlmsghdr
	sizeofRoute     = 12 // struct rtmsg
	sizeofNextHop   = 8  // struct rtnexthop
	sizeofAttribute = 4  // struct rtattr
	sizeofCode      = 4  // of struct nlmsgerr before the header of the request
	sizeofLink      = 16 // struct ifinfomsg

	kindNothing, kindError, kindDone = 1, 2, 3 // NLMSG_NOOP, NLMSG_ERROR, NLMSG_DONE
	kindNewLink, kindDelLink         = 16, 17  // RTM_NEWLINK, RTM_DELLINK
	getRoute, getNextHop             = 26, 106 // RTM_GETROUTE, RTM_GETNEXTHOP

	flagRequest       = 0x1    // NLM_F_REQUEST
	flagAck           = 0x4    // NLM_F_ACK
	flagDump          = 0x300  // NLM_F_DUMP
	flagAckAttributes = 0x200  // NLM_F_ACK_TLVS, of an answer
	flagAppend        = 0x800  // NLM_F_APPEND
	flagNested        = 0x8000 // NLA_F_NESTED

	errorText = 1 // NLMSGERR_ATTR_MSG
	linkUp    = 1 // IFF_UP

	familyAny, familyIPv4, familyIPv6 = 0, 2, 10

	routeCloned                  = 0x200 // RTM_F_CLONED
	typeUnicast                  = 1     // RTN_UNICAST
	scopeUniverse                = 0     // RT_SCOPE_UNIVERSE
	tableUnspecified, tableLocal = 0, 255

	rtaDestination, rtaPriority, rtaMultipath = 1, 6, 9
	rtaTable, rtaEncapType, rtaEncap          = 15, 21, 22
	rtaNextHop                                = 30 // RTA_NH_ID
)
