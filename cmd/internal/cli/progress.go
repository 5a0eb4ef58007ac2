package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// ShowProgress prints what a command is doing once it has taken two seconds: on a terminal in one line that changes, and
// elsewhere in a line every ten seconds. The function that it returns ends it.
func ShowProgress(w io.Writer, what string, state func() string) (stop func()) {
	f, ok := w.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd()))
	every := 10 * time.Second
	if terminal {
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
			if terminal {
				fmt.Fprintf(w, "\r\x1b[K%s: %s", what, state())
			} else {
				fmt.Fprintf(w, "%s: %s\n", what, state())
			}
			select {
			case <-done:
				if terminal {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-t.C:
			}
		}
	})
	return func() { close(done); wait.Wait() }
}
