// Command hopscope collects, decodes and watches in-band network telemetry.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	ctx := listen(context.Background())
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "hopscope: %v\n", err)
	os.Exit(exitStatus(err))
}
