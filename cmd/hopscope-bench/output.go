package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/bench/result"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

// output is the form in which a bench writes what it measured.
type output struct{ format string }

func (o *output) flag(f *pflag.FlagSet) {
	f.StringVar(&o.format, "format", "table", strings.Join(result.Formats, ", "))
}

func (o *output) check() error {
	if !slices.Contains(result.Formats, o.format) {
		return cli.Usagef("--format %q is none of %s", o.format, strings.Join(result.Formats, ", "))
	}
	return nil
}

// write runs a bench that writes text, and for programs makes a result of its tables. A bench that draws nothing has no seed.
func (o *output) write(c *cobra.Command, seed *uint64, run func(w io.Writer) error) error {
	if o.format == "table" {
		return run(c.OutOrStdout())
	}
	var r result.Recorder
	if err := run(&r); err != nil {
		return err
	}
	x := result.Result{Bench: commandLine(c), Version: cli.Version(release), Machine: result.ThisMachine(), Seed: seed, Tables: r.Tables()}
	return x.Write(c.OutOrStdout(), o.format)
}

// commandLine is the command with its arguments and the flags that were given, but for those that say how the result is written.
func commandLine(c *cobra.Command) string {
	words := append([]string{c.CommandPath()}, c.Flags().Args()...)
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "format" && f.Name != "svg" {
			words = append(words, "--"+f.Name+"="+strings.Trim(f.Value.String(), "[]"))
		}
	})
	return strings.Join(words, " ")
}
