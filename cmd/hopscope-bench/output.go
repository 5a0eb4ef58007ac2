package main

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/cmd/internal/cli"
)

// output is the form in which a bench writes what it measured.
type output struct{ format string }

func (o *output) flag(f *pflag.FlagSet) {
	f.StringVar(&o.format, "format", "table", strings.Join(harness.Formats, ", "))
}

func (o *output) check() error {
	if !slices.Contains(harness.Formats, o.format) {
		return cli.Usagef("--format %q is none of %s", o.format, strings.Join(harness.Formats, ", "))
	}
	return nil
}

// write runs a bench that writes text, and for programs makes a result of its tables. A bench that draws nothing has no seed.
func (o *output) write(c *cobra.Command, seed *uint64, run func(w io.Writer) error) error {
	if o.format == "table" {
		return run(c.OutOrStdout())
	}
	var r harness.Recorder
	if err := run(&r); err != nil {
		return err
	}
	x := harness.Result{Bench: commandLine(c), Version: cli.Version(release), Machine: harness.ThisMachine(), Seed: seed, Tables: r.Tables()}
	return x.Write(c.OutOrStdout(), o.format)
}

// commandLine is the command with its arguments and the given flags, as a shell reads it. Flags about the form of the
// result are left out.
func commandLine(c *cobra.Command) string {
	words := []string{c.CommandPath()}
	for _, a := range c.Flags().Args() {
		words = append(words, word(a))
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "format" || f.Name == "svg" {
			return
		}
		if f.Name == "topologies" || f.Name == "programs" || f.Name == "kafka" { // where they lie is of no use on another machine
			words = append(words, "--"+f.Name+"=DIR")
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			if values = list.GetSlice(); f.Value.Type() != "stringArray" { // of which each flag has one value
				values = []string{strings.Join(values, ",")}
			}
		}
		for _, v := range values {
			words = append(words, "--"+f.Name+"="+word(v))
		}
	})
	return strings.Join(words, " ")
}

// plain matches words that need no quotes in a shell.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// word is a text as one word of a command of a shell.
func word(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
