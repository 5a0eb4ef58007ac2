package stores

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestRulesFile accepts in a file that is read at the start and again when it changes; a wrong one leaves the rules of before.
func TestRulesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("accepted: [{alert: high-latency interface 7:3, by: ann, at: 2026-11-22T22:00:00Z}, {alert: nonsense, at: 2026-11-22T22:00:00Z}]\n")
	f := OpenRules(path, slog.New(slog.DiscardHandler))
	got := Acceptances(f.Rules())
	if len(got) != 1 || got[0].Kind != inference.HighLatency || got[0].Element != inference.ElementOfHop(inference.HopKey{Node: 7, EgressIf: 3}) || got[0].By != "ann" ||
		got[0].At != time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC).UnixNano() {
		t.Fatalf("accepted are %+v", got)
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		if !testkit.Await(ok) {
			t.Fatal(what)
		}
	}
	write("accepted: [{alert: high-latency}]\n") // without a time
	until("a wrong file is no problem", func() bool { f.Rules(); return f.Problem() != "" })
	if len(f.Rules().Accepted) != 2 {
		t.Error("a wrong file replaces the rules of before")
	}
	write("")
	until("an empty file accepts", func() bool { return len(f.Rules().Accepted) == 0 })
	if f.Problem() != "" {
		t.Errorf("problem of a right file: %s", f.Problem())
	}
	if (*RulesFile)(nil).Rules() == nil || (*RulesFile)(nil).Problem() != "" {
		t.Error("no file has rules")
	}
}
