// Package linkemu carries packets between pairs of interfaces with the delay, loss, rate and other
// impairments of package netem, in user space: for kernels without tc-netem(8), and for links on
// which XDP programs send, whose packets bypass every queueing discipline.
//
//	node A      the wire's namespace          node B
//	eth0 ~~~~~~ w0a -- AF_PACKET -- w0b ~~~~~ eth0      ~~~ veth
//
// One thread does everything: it waits in epoll_pwait2 for frames and for the time of the next
// frame to send, reads and sends up to 64 frames with one system call, and keeps those under way in
// a heap by the time of their arrival. A frame's time is the one at which the kernel has received
// it, so that what delays the thread delays a frame only if it is longer than the link's own delay.
// The thread has real-time priority where the kernel grants that, because the wire stands for
// physics: it should not slow down when what runs over it is busy.
//
// Frames must be as they would be on a line: the interfaces of the nodes have checksums computed
// and segments cut before they send (package lab turns the offloads off). What is longer than the
// MTU nevertheless is dropped and counted.
package linkemu
