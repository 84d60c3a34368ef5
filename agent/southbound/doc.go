// Package southbound is how head-ends get paths of flows from a controller: gRPC with mutual TLS,
// as southboundpb/southbound.proto describes it. It has the head-end's side, and what both sides
// share; the controller's side is in package controller.
//
// A head-end may know several controllers, and follows the one of the highest epoch ([Office]).
// Without any, flows keep their paths until their time is over.
package southbound
