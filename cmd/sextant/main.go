// Command sextant is the whole product in one binary: the agent that runs on
// edges and hosts, the commands that talk to it, and the lab to try it in.
//
// Each noun and each verb has a file. A command is a function of an env and
// its arguments, and nothing in this package but main touches the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker: -X main.version=...
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, processEnv())
	stop()
	os.Exit(code)
}
