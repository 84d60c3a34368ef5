package main

import "fmt"

// progressLine replaces the last line of a terminal. The empty text removes it.
func (a *app) progressLine(text string) {
	fmt.Fprintf(raw(a.stderr), "\r%s\x1b[K", cell(text))
}
