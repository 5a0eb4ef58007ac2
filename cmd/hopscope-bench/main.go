// Command hopscope-bench measures hopscope on this machine, and the published algorithms beside its own.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/inference/names"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // the second signal kills
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintf(names.Screen(os.Stderr), "hopscope-bench: %v\n", err)
	os.Exit(cli.ExitStatus(err))
}
