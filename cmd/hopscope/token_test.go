package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector"
)

// TestTokenCommands makes a token by a running page, uses it, and revokes it.
func TestTokenCommands(t *testing.T) {
	dir := t.TempDir()
	cfg := defaultConfig()
	cfg.UDP.Listen, cfg.Web.Listen = []string{"127.0.0.1:0"}, "127.0.0.1:0"
	cfg.Flows.MemoryBytes, cfg.Shards, cfg.UDP.Workers = 1<<20, 1, 1
	cfg.Alerts.File = filepath.Join(dir, "alerts.yaml")
	cfg.Web.TokenFile, cfg.Web.Access.Dir = filepath.Join(dir, "token"), filepath.Join(dir, "access")
	if err := os.WriteFile(cfg.Web.TokenFile, []byte("correct-horse-battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	col, err := openLive(&cfg, collector.Options{Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- col.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	run := func(tokenFile string, args ...string) (string, error) {
		var out, errs bytes.Buffer
		root := rootCommand()
		root.SetArgs(append(args, "--url", col.url(), "--token-file", tokenFile))
		root.SetOut(&out)
		root.SetErr(&errs)
		err := root.ExecuteContext(ctx)
		return out.String(), err
	}
	admin := cfg.Web.TokenFile
	if out, err := run(admin, "token", "list"); err != nil || !strings.Contains(out, "no tokens by role") {
		t.Fatalf("%s %v", out, err)
	}
	secret, err := run(admin, "token", "create", "--name", "ci", "--role", "viewer")
	if err != nil || !strings.HasPrefix(secret, "hop_") || strings.Count(secret, "\n") != 1 {
		t.Fatalf("%q %v", secret, err)
	}
	viewer := filepath.Join(dir, "viewer")
	if err := os.WriteFile(viewer, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(viewer, "findings"); err != nil {
		t.Errorf("a viewer reads: %s %v", out, err)
	}
	if _, err := run(viewer, "token", "create", "--name", "more", "--role", "admin"); err == nil || !strings.Contains(err.Error(), "needs the role admin") {
		t.Errorf("a viewer makes a token: %v", err)
	}
	if out, err := run(admin, "token", "list"); err != nil || !strings.Contains(out, "ci    viewer") || strings.Contains(out, "never  -\n") || strings.Contains(out, strings.TrimSpace(secret)) {
		t.Errorf("%s %v", out, err)
	}
	if out, err := run(admin, "token", "revoke", "ci"); err != nil || !strings.HasPrefix(out, "revoked ci (") {
		t.Errorf("%s %v", out, err)
	}
	if _, err := run(viewer, "findings"); err == nil {
		t.Error("a revoked token reads")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, col.url()+"metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer correct-horse-battery")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"hopscope_page_changes_total 2", "hopscope_page_forbidden_total 1", "hopscope_page_wrong_logins_total 1", "hopscope_page_tokens 0"} {
		if !strings.Contains(text.String(), line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
}
