package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ManCommand is the command that writes a manual page for each command of its root, in the macros of man(7).
//
// cobra has a generator of its own, whose pages go through Markdown. That joins the indented lines of examples and drops words in
// angle brackets, and it links a reader of Markdown and one of YAML.
func ManCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "man",
		Short: "Write the manual pages of all commands",
		Long: `Write one manual page of section 1 for each command into a directory, such as
hopscope-plan-cover.1. The directory is made if it is not there. Packages have
the pages already; for a program that was built from source:

  hopscope man --dir ~/.local/share/man/man1`,
		Args: ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				return Usagef("--dir is missing: the directory that pages are written to")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			return writePages(c.Root(), dir)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "directory that the pages are written to")
	return c
}

func writePages(c *cobra.Command, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, pageName(c)+".1"), manPage(c), 0o644); err != nil {
		return err
	}
	for _, sub := range documented(c) {
		if err := writePages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// documented are the commands below c that have a page.
func documented(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			list = append(list, sub)
		}
	}
	return list
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the page of c. It has no date: the same program gives the same bytes.
func manPage(c *cobra.Command) []byte {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	var b bytes.Buffer
	root := c.Root()
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s %s\" \"Manual of %s\"\n.ad l\n", roff(strings.ToUpper(pageName(c))), root.Name(), roff(root.Version), root.Name())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", roff(pageName(c)), roff(c.Short), roff(c.UseLine()))
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".br\n.B %s\n", roff(c.CommandPath()+" COMMAND"))
	}
	b.WriteString(".SH DESCRIPTION\n")
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	writeProse(&b, text)
	if list := documented(c); len(list) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range list {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(pageName(sub)), roff(sub.Short))
		}
	}
	b.WriteString(".SH OPTIONS\n")
	writeFlags(&b, c.NonInheritedFlags())
	writeFlags(&b, c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		writeVerbatim(&b, strings.Split(strings.Trim(c.Example, "\n"), "\n"))
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n0: done. %d: it failed. %d: it was asked wrongly, by flags, settings or inputs.\n", ExitFailed, ExitUsage)
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(pageName(c.Parent())))
	}
	return b.Bytes()
}

// writeProse writes paragraphs. Lines that are indented stay as they are.
func writeProse(b *bytes.Buffer, text string) {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		end := i + 1
		switch line := lines[i]; {
		case line == "":
			b.WriteString(".PP\n")
		case line[0] == ' ' || line[0] == '\t':
			for end < len(lines) && strings.HasPrefix(lines[end], line[:1]) {
				end++
			}
			writeVerbatim(b, lines[i:end])
		default:
			fmt.Fprintln(b, roff(line))
		}
		i = end
	}
}

func writeVerbatim(b *bytes.Buffer, lines []string) {
	b.WriteString(".nf\n")
	for _, line := range lines {
		fmt.Fprintln(b, roff(strings.ReplaceAll(line, "\t", "    ")))
	}
	b.WriteString(".fi\n")
}

func writeFlags(b *bytes.Buffer, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", f.Shorthand)
		}
		fmt.Fprintf(b, "\\fB%s\\fR", roff("--"+f.Name))
		if kind != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(kind))
		}
		switch f.DefValue {
		case "", "0", "0s", "false", "[]":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, "\n%s\n", roff(usage))
	})
}

// roff is text as a formatter prints it: no macro, no escape, and hyphens that can be copied as minus signs.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
