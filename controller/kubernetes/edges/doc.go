// Package edges keeps the agents of edges equal to what is planned for them. Each edge has a
// goroutine of its own, so that one that does not answer holds up no other.
package edges
