// Package fpm is a forwarding plane manager: it receives the routes that FRRouting's zebra has
// selected. zebra's module dplane_fpm_nl connects and sends them as netlink messages: all of them
// when it connects, then each change. Known routes stay in force while a client sends invalid
// messages, is silent or disconnects, until a client has sent all of its routes again.
package fpm
