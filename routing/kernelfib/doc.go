// Package kernelfib reads and writes the kernel's routing tables by rtnetlink: a source of routes
// over SRv6, and a table with its shadow that the kernel forwards by alone. Both are of the network
// namespace in which they are opened.
package kernelfib
