//go:build !unix

package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
)

const stdoutName = "standard output"

var errReaderGone = errors.New("its reader has gone (broken pipe): start the collector together with a reader again, or write to a file")

// stream is standard output. Here nothing interrupts a write to a pipe that is not read.
type stream struct {
	name string
	f    *os.File
	// The lines that could not all be written, and the bytes of those that are written.
	failed []byte
	done   int
}

func newStream(f *os.File, name string) (*stream, error) { return &stream{name: name, f: f}, nil }

// write writes lines, or their remaining part if the last call failed with the same lines.
func (s *stream) write(ctx context.Context, lines []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !bytes.Equal(lines, s.failed) {
		s.done = 0
	}
	n, err := s.f.Write(lines[s.done:])
	s.done += n
	if err != nil {
		s.failed = append(s.failed[:0], lines...)
		return fmt.Errorf("write to %s: %w", s.name, err)
	}
	s.failed, s.done = s.failed[:0], 0
	return nil
}

func (s *stream) close() error { return nil }
