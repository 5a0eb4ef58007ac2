package plan

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/p4/steer"
)

// measuredFlags are the flags that name a running collector, and the collector once it was asked.
type measuredFlags struct {
	cli.Asker
	*steer.Measured
}

// flags adds the flags that all plan commands with measured inputs share.
func (m *measuredFlags) flags(c *cobra.Command, what string) {
	f := c.Flags()
	f.StringVar(&m.URL, "from-collector", "", "page of a running collector, such as http://127.0.0.1:8080, whose windows give "+what)
	f.StringVar(&m.TokenFile, "token-file", "", "file with the token of the page of --from-collector, where it wants one")
	m.Flag = "from-collector"
}

// asked reports whether a collector is given. It returns an error if the flags with need one and there is none.
func (m *measuredFlags) asked(c *cobra.Command, with ...string) (bool, error) {
	if m.URL != "" {
		return true, nil
	}
	for _, name := range append(with, "token-file") {
		if c.Flags().Changed(name) {
			return false, cli.Usagef("--%s goes with --from-collector", name)
		}
	}
	return false, nil
}

// open reads what all figures need.
func (m *measuredFlags) open(ctx context.Context) (err error) {
	m.Measured, err = steer.OpenMeasured(ctx, m.URL, m.Into)
	return err
}
