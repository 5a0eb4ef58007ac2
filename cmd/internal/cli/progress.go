package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hopscope/hopscope/inference/names"
)

// ShowProgress prints the state of a command that has taken two seconds. On a terminal it updates one line, and
// elsewhere it prints a line every ten seconds. The returned function ends it.
func ShowProgress(w io.Writer, what string, state func() string) (stop func()) {
	every := 10 * time.Second
	line, shown := terminal(w)
	if shown {
		every = 200 * time.Millisecond
	}
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-done:
			return
		case <-time.After(2 * time.Second):
		}
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			if shown {
				fmt.Fprintf(line, "\r\x1b[K%s: %s", names.Printable(what), names.Printable(state()))
			} else {
				fmt.Fprintf(w, "%s: %s\n", what, state())
			}
			select {
			case <-done:
				if shown {
					fmt.Fprint(line, "\r\x1b[K")
				}
				return
			case <-t.C:
			}
		}
	})
	return func() { close(done); wait.Wait() }
}
