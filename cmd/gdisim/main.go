// Command gdisim tells what a message between two GPUs costs, stage by stage.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"gdisim/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program the hard way.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
