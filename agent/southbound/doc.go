// Package southbound is the head-end's side of the protocol by which a controller assigns paths to
// flows: gRPC with mutual TLS (southboundpb/southbound.proto). It has what both sides share, too;
// the controller's side is in package controller.
//
// Changes may come as datagrams, too, ahead of the stream, which has the last word ([Cipher]).
//
// A head-end may know several controllers, and follows the one of the highest epoch ([Office]).
// Without any, flows keep their paths until their time is over.
package southbound
