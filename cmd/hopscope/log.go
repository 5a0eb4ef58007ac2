package main

import (
	"io"
	"log/slog"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/inference/names"
)

// logConfig is how the program speaks.
type logConfig struct {
	Level  string `yaml:"level" doc:"Least severity that is written." oneof:"debug|info|warn|error"`
	Format string `yaml:"format" doc:"auto is text on a terminal, JSON otherwise." oneof:"auto|text|json"`
}

// SetDefaults sets level info, and a format by the output.
func (c *logConfig) SetDefaults() { *c = logConfig{Level: "info", Format: "auto"} }

// newLogger is the logger of a command that runs until it is asked to stop: lines that come too often are left out and counted.
func newLogger(c logConfig, w io.Writer) *slog.Logger {
	return slog.New(cli.LimitLines(newHandler(c, w)))
}

// newHandler writes text to a terminal and JSON to anything else, unless the settings choose.
func newHandler(c logConfig, w io.Writer) slog.Handler {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	text := c.Format == "text"
	if c.Format == "auto" {
		text = cli.IsTerminal(w)
	}
	if text {
		return slog.NewTextHandler(names.Screen(w), opts)
	}
	return slog.NewJSONHandler(names.ScreenJSON(w), opts)
}

// flushLog logs what has been left out, at the end of a command.
func flushLog(log *slog.Logger) { cli.FlushLines(log) }
