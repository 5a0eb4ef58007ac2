package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

// algorithm is a program of another origin that a bench runs beside ours.
type algorithm struct {
	command   string
	instances string // directory
	limit     time.Duration
}

// algorithmHelp is the end of the help of each bench with a program of another origin.
const algorithmHelp = `Its name and its
arguments are separated by spaces. --write-instances writes what it is asked, and the
truth beside. docs/harness.md has the formats of questions and answers.`

// flags adds the flags of a bench, whose programs do something instead of ours.
func (a *algorithm) flags(f *pflag.FlagSet, does string) {
	f.StringVar(&a.command, "algorithm", "", "command of a program that "+does+" instead: see above")
	f.StringVar(&a.instances, "write-instances", "", "directory for the instances of --algorithm, a file each, made if need be")
}

// limited adds the flag of the time for an answer, where a bench has no such flag otherwise.
func (a *algorithm) limited(f *pflag.FlagSet) {
	f.DurationVar(&a.limit, "time-limit", 10*time.Second, "for one answer of --algorithm")
}

// asked reports whether there is something to do for it. An empty command, as of a variable of a shell that is not set, is one too.
func (a *algorithm) asked(f *pflag.FlagSet) bool {
	return f.Changed("algorithm") || f.Changed("write-instances")
}

// run writes instances, and runs the program over them.
func (a *algorithm) run(c *cobra.Command, limit time.Duration, write func(dir string) error, table func(*harness.Program) error) error {
	if limit <= 0 {
		return cli.Usagef("--time-limit %v is not above 0s", limit)
	}
	var p *harness.Program
	if c.Flags().Changed("algorithm") {
		var err error
		if p, err = harness.NewProgram(a.command, limit); err != nil {
			return cli.Usagef("--algorithm %q: %w", a.command, err)
		}
	}
	if c.Flags().Changed("write-instances") {
		if a.instances == "" {
			return cli.Usagef("--write-instances names no directory")
		}
		if err := write(a.instances); err != nil {
			return cli.WrongInput(fmt.Errorf("--write-instances: %w", err))
		}
	}
	if p == nil {
		return nil
	}
	done := cli.ShowProgress(c.ErrOrStderr(), "measuring", func() string { return p.String() })
	defer done()
	return table(p)
}
