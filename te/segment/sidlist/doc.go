// Package sidlist turns paths into what routers are given: addresses after a locator plan, segment
// routing headers, NEXT-C-SID carriers, lines for iproute2 and FRRouting, and JSON.
package sidlist
