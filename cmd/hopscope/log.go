package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/hopscope/hopscope/collector/service"
	"golang.org/x/term"
)

// logConfig is how the program speaks.
type logConfig struct {
	Level  string `yaml:"level" doc:"Least severity that is written." oneof:"debug|info|warn|error"`
	Format string `yaml:"format" doc:"auto is text on a terminal, JSON otherwise." oneof:"auto|text|json"`
}

// SetDefaults tells what is worth knowing.
func (c *logConfig) SetDefaults() { *c = logConfig{Level: "info", Format: "auto"} }

// newLogger is the logger of a command that runs until it is told to stop: lines that come too often are left out and
// counted.
func newLogger(c logConfig, w io.Writer) *slog.Logger {
	return slog.New(service.LimitLines(newHandler(c, w)))
}

// newHandler writes text to a terminal and JSON to anything else, unless told.
func newHandler(c logConfig, w io.Writer) slog.Handler {
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
		return slog.NewTextHandler(w, opts)
	}
	return slog.NewJSONHandler(w, opts)
}

// flushLog logs what has been left out, at the end of a command.
func flushLog(log *slog.Logger) { service.FlushLines(log) }
