package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// available are c and all commands below it that users can find.
func available(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, available(sub)...)
		}
	}
	return list
}

// Every command has a page, with its sentence, its text and all its flags, and there are no other pages.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	if status, err := exitOf(t, "man", "--dir", dir); status != 0 {
		t.Fatal(err)
	}
	var pages []string
	for _, c := range available(rootCommand()) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		pages = append(pages, name)
		text := plainPage(readText(t, filepath.Join(dir, name)))
		want := []string{c.Short, c.UseLine()}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			want = append(want, strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), "\n"))
		}
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				want = append(want, "--"+f.Name)
			}
		})
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				want = append(want, strings.ReplaceAll(sub.CommandPath(), " ", "-")+" (1)")
			}
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not have %q", name, w)
			}
		}
		if c.HasAvailableFlags() && !strings.Contains(text, "\n.SH OPTIONS\n.TP\n") {
			t.Errorf("%s has no options", name)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(pages, e.Name()) {
			t.Errorf("%s is the page of no command", e.Name())
		}
	}
	if len(pages) < 40 {
		t.Errorf("%d pages", len(pages))
	}
	if groff, err := exec.LookPath("groff"); err == nil { // it is there where packages are tested
		for _, name := range pages {
			if out, err := exec.Command(groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-z", filepath.Join(dir, name)).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	}
}

// plainPage is a page without what is for the formatter.
func plainPage(page string) string {
	page = strings.NewReplacer(`\-`, "-", `\fB`, "", `\fI`, "", `\fR`, "", `\&`, "").Replace(page)
	return strings.ReplaceAll(page, `\e`, `\`)
}

// A shell is offered every command and every flag.
func TestCompletion(t *testing.T) {
	for _, c := range available(rootCommand()) {
		path := append([]string{"__complete"}, strings.Fields(c.CommandPath())[1:]...)
		offered := answer(t, append(path[:len(path):len(path)], "")...)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && !strings.HasPrefix(offered, sub.Name()+"\t") && !strings.Contains(offered, "\n"+sub.Name()+"\t") {
				t.Errorf("%s: %s is not offered", c.CommandPath(), sub.Name())
			}
		}
		offered = "\n" + answer(t, append(path[:len(path):len(path)], "--")...)
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(offered, "\n--"+f.Name+"\t") && !strings.Contains(offered, "\n--"+f.Name+"\n") {
				t.Errorf("%s: --%s is not offered", c.CommandPath(), f.Name)
			}
		})
	}
}

// answer is what the program prints to args.
func answer(t *testing.T, args ...string) string {
	t.Helper()
	c := rootCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&bytes.Buffer{})
	c.SetArgs(args)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("hopscope %s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}
