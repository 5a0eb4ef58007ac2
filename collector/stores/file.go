package stores

import "github.com/hopscope/hopscope/sink/flock"

// ReplaceFile writes a file so that a crash leaves the old one or the new one, whole.
func ReplaceFile(path string, b []byte) error { return flock.ReplaceBytes(path, b) }
