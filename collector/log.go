package collector

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// NewLogger writes text to a terminal and JSON to anything else, unless told.
func NewLogger(c Log, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	text := c.Format == "text"
	if f, ok := w.(*os.File); ok && c.Format == "auto" {
		text = term.IsTerminal(int(f.Fd()))
	}
	if text {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}
