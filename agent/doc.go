// Package agent runs a node: it keeps the kernel's programs and tables equal to the node's
// configuration.
//
//	node file --> Run --> owner goroutine --> datapath (eBPF programs, maps)
//	API requests ----------^      ^------- route and neighbour changes
//
// One goroutine owns the configuration and the data plane; requests, the kernel's messages and
// metric scrapes send it functions to run. A change is checked, built beside what runs, and then
// switched to; if anything refuses, what ran before goes on running. When the agent ends, however
// it ends, packets are forwarded on: programs, links and maps are pinned, and the next agent takes
// over from them.
package agent
