package stores

import (
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/hopscope/hopscope/sink/flock"
)

// ReplaceFile writes a file so that a crash leaves the old one or the new one, whole.
func ReplaceFile(path string, b []byte) error { return flock.ReplaceBytes(path, b) }

// Tidy removes what runs left beside a file that were killed while they replaced it. It is for the start of a run.
func Tidy(path string, log *slog.Logger) {
	if err := flock.RemoveUnfinished(path, time.Now()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("a partial file of a killed run was not removed", "file", path, "error", err.Error())
	}
}
