package stores

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestLogFindings: what begins is a warning; what rests, has ended, or has a cause of its own is not.
func TestLogFindings(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return a
		}
		return slog.Attr{}
	}}))
	f := inference.Finding{ID: 1, Kind: inference.HighLatency, Severity: inference.Critical}
	rests, ended, caused := f, f, f
	rests.Resting, ended.End, caused.Cause = true, 1, 2
	LogFindings(log, []inference.Finding{f, rests, ended, caused}, nil)
	want := "level=WARN msg=finding\nlevel=INFO msg=\"finding rests\"\nlevel=INFO msg=\"finding ended\"\nlevel=INFO msg=finding\n"
	if got := b.String(); got != want {
		t.Errorf("%swant\n%s", strings.TrimSpace(got)+"\n", want)
	}
}
