package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestDocsCommand reads a page, a section, a search, and the pages in the way of a browser.
func TestDocsCommand(t *testing.T) {
	print := func(args ...string) (string, error) {
		var out strings.Builder
		c := rootCommand()
		c.SetOut(&out)
		c.SetErr(io.Discard)
		c.SetArgs(append([]string{"docs"}, args...))
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, tt := range []struct{ args, begins string }{
		{"", "Start: "}, {"operating", "# Operating guide\n"}, {"docs/operating.md", "# Operating guide\n"},
		{"findings#high-queue", "### `high-queue`\n"}, {"--search high-queue", "findings#high-queue\n"},
	} {
		if text, err := print(strings.Fields(tt.args)...); err != nil || !strings.HasPrefix(text, tt.begins) {
			t.Errorf("docs %s: %v, %.60q", tt.args, err, text)
		}
	}
	if _, err := print("--search", "nosuchwordanywhere"); err == nil {
		t.Error("a search without a hit succeeds")
	}

	ctx, end := context.WithCancel(t.Context())
	r, w := io.Pipe()
	c := rootCommand()
	c.SetOut(w)
	c.SetArgs([]string{"docs", "--listen", "127.0.0.1:0"})
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	_, address, _ := strings.Cut(strings.TrimSpace(line), " at ")
	if err != nil || address == "" {
		t.Fatalf("%q, %v", line, err)
	}
	answer, err := http.Get(address + "search?q=high-queue")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `href="findings#high-queue"`) {
		t.Errorf("%d, %.200s", answer.StatusCode, body)
	}
	end()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience):
		t.Error("it does not end")
	}
}
