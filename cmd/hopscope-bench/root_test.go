package main

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/cmd/internal/cli"
)

var update = flag.Bool("update", false, "write the goldens anew")

// everyCommand returns the commands that do something, without those that cobra adds.
func everyCommand(c *cobra.Command) (list []*cobra.Command) {
	if c.Name() == "completion" || c.Name() == "help" {
		return nil
	}
	list = append(list, c)
	for _, sub := range c.Commands() {
		list = append(list, everyCommand(sub)...)
	}
	return list
}

// TestFrozenHelp holds the help of every command.
func TestFrozenHelp(t *testing.T) {
	var b bytes.Buffer
	for _, c := range everyCommand(rootCommand()) {
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		root := rootCommand()
		root.SetOut(&b)
		root.SetArgs(args)
		fmt.Fprintf(&b, "$ hopscope-bench %s\n", strings.Join(args, " "))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("hopscope-bench %q: %v", args, err)
		}
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", "help.txt")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("help of the commands differs from %s (-update writes it):\n%s", path, b.Bytes())
	}
}

// TestExitStatusOfWrongQuestions asks every command wrongly, in every argument and every flag that can be wrong.
func TestExitStatusOfWrongQuestions(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("text", []byte("this is nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := []string{
		"nonsense", "--nonsense", "help nonsense", "help pint nonsense", "completion nonsense", "completion bash nonsense",
		"agent x", "agent --format xml",
		"pipeline x", "pipeline --flows 0", "pipeline --format xml",
		"planner nonsense", "planner --table nothing", "planner --time-limit 0s", "planner --topologies nowhere", "planner --topologies text",
		"planner --algorithm no-such-program", "planner --write-instances text",
		"pint --algorithm no-such-program", "pint --write-instances text", "pint --algorithm true --figure 5",
		"findings --algorithm no-such-program", "findings --write-instances text --hops 1", "findings ports --algorithm true", "findings --algorithm true --time-limit 0s",
		"loop --algorithm no-such-program", "loop --write-instances text --fault link-down", "loop bytes --algorithm true",
		"sizing x", "sizing --format xml", "sizing --setups large", "sizing --program nowhere", "sizing --influxd nowhere", "sizing --rounds 0", "sizing --turn 1ms", "sizing --rate -1",
		"soak x", "soak --format xml", "soak --program nowhere", "soak --influxd nowhere", "soak --trial 1ms", "soak --length 1s", "soak --length 1m --settle 1m", "soak --share 0", "soak --share 2",
		"pint x", "pint --figure 13", "pint --runs -1", "pint --format xml", "pint --row nonsense",
		"loop x", "loop nonsense", "loop --fault nonsense", "loop --format xml", "loop --seeds 0",
		"planner --format xml", "findings --format xml", "compare --format xml text text", "compare text", "compare text text", "compare nowhere nowhere",
		"fleet x", "fleet --brokers nowhere", "fleet --format xml",
		"udp x", "udp --receivers nonsense", "udp --command x --to nowhere", "udp --to nowhere", "udp --floods -1", "udp --payload x", "udp --sender x", "udp --pairs -1", "udp --pairs 2 --sender socket", "udp --format xml", "udp --cpuprofile x --rounds 0",
		"peers x", "peers --format xml", "peers --floods -1", "peers --sender x a", "peers --outputs x", "peers --payloads x", "peers --programs nowhere", "peers --kafka nowhere",
		"findings nonsense", "findings --hops 0", "findings --quiet -1", "findings --seeds 0",
		"findings world x", "findings world --half both", "findings world --scenario nothing", "findings world --format xml", "findings world --seeds 0",
	}
	for _, c := range everyCommand(rootCommand()) {
		path := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "hopscope-bench"))
		asked = append(asked, strings.TrimSpace(path+" --no-such-flag"))
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch flag := path + " --" + f.Name; {
			case f.Name == "help" || f.Name == "version" || f.Name == "svg": // svg says where something is written
			case f.Value.Type() != "string" && f.Value.Type() != "stringArray" && f.Value.Type() != "stringSlice":
				asked = append(asked, flag+"=nonsense")
			case !slices.ContainsFunc(asked, func(a string) bool { return strings.HasPrefix(a, flag+" ") }):
				t.Errorf("no wrong value of %s is asked", flag)
			}
		})
	}
	words := [][]string{}
	for _, args := range asked {
		words = append(words, strings.Fields(args))
	}
	for _, bench := range []string{"planner", "pint", "findings", "loop"} { // empty, as a variable that is not set
		words = append(words, []string{bench, "--algorithm", ""}, []string{bench, "--write-instances", ""}, []string{bench, "--algorithm", "true 'x y'"})
	}
	for _, args := range words {
		root := rootCommand()
		root.SetArgs(args)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.ExecuteContext(t.Context()); cli.ExitStatus(err) != cli.ExitUsage {
			t.Errorf("hopscope-bench %q: %v, want exit status %d", args, err, cli.ExitUsage)
		}
	}
}

func wellFormed(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var svg struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	}
	if err := xml.Unmarshal(b, &svg); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}
