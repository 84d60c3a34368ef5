// Package inspect tells what a topology is like: how large, whether connected, and what matters to
// those who compute paths through it, such as bridges and parallel links.
package inspect
