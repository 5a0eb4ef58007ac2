// Command hopscope collects, decodes and watches in-band network telemetry.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hopscope/hopscope/inference/names"
)

func main() {
	ctx := listen(context.Background())
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintf(names.Screen(os.Stderr), "hopscope: %v\n", err) // an error may hold what others wrote
	os.Exit(exitStatus(err))
}
