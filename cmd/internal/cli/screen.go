package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hopscope/hopscope/inference/names"
)

// Screen escapes control sequences in all outputs of a command, so that foreign data steers no terminal. The output of
// a command that prints JSON stays JSON with the same values.
func Screen(c *cobra.Command) {
	screen := names.Screen
	if f := c.Flags().Lookup("format"); f != nil && f.Value.String() == "json" || c.Annotations["prints"] == "json" {
		screen = names.ScreenJSON
	}
	out, err := c.OutOrStdout(), c.ErrOrStderr()
	c.SetOut(screened{screen(out), out})
	c.SetErr(screened{names.Screen(err), err})
}

// screened is an output behind the border.
type screened struct {
	io.Writer
	under io.Writer
}

// Plain is the writer behind w, without the border: for bytes that are known to be printed ASCII and line ends.
func Plain(w io.Writer) io.Writer {
	if s, ok := w.(screened); ok {
		return s.under
	}
	return w
}

// terminal returns the file under w, if that is a terminal.
func terminal(w io.Writer) (f *os.File, ok bool) {
	if f, ok = Plain(w).(*os.File); ok {
		ok = term.IsTerminal(int(f.Fd()))
	}
	return f, ok
}

// IsTerminal reports whether what is written to w is shown on a terminal.
func IsTerminal(w io.Writer) bool {
	_, ok := terminal(w)
	return ok
}
