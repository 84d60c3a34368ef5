// Package sidlist writes paths as router configuration: addresses by a locator plan, segment
// routing headers, NEXT-C-SID carriers, lines for iproute2 and FRRouting, and JSON.
package sidlist
