//go:build unix

package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const stdoutName = "standard output"

// errReaderGone is EPIPE in words that help.
var errReaderGone = errors.New("its reader has gone (broken pipe): start the collector together with a reader again, or write to a file")

const (
	// pieceBytes is how much a ready pipe takes at once, without waiting and without mixing it with the output of
	// others (PIPE_BUF of Linux).
	pieceBytes = 4096
	// pollMillis is how long a write to a full pipe waits before it checks its context again.
	pollMillis = 50
)

// stream is a file that can only be appended to, and that may block: a pipe, a terminal.
type stream struct {
	name   string
	fd     int
	piece  int    // most bytes that are written at once
	failed []byte // the lines that could not all be written
	done   int    // bytes of those that are written
}

// newStream writes to a duplicate of f. The runtime ends a process that writes to a broken pipe as its standard
// output; of the duplicate it returns an error.
func newStream(f *os.File, name string) (*stream, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	s := &stream{name: name, fd: fd, piece: pieceBytes}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		s.piece = 1 << 30
	}
	return s, nil
}

// write writes lines, or their remaining part if the last call failed with the same lines.
func (s *stream) write(ctx context.Context, lines []byte) error {
	if !bytes.Equal(lines, s.failed) {
		if err := s.finishLine(ctx); err != nil {
			return err
		}
		s.done = 0
	}
	n, err := s.send(ctx, lines[s.done:])
	s.done += n
	if err != nil {
		s.failed = append(s.failed[:0], lines...)
		return err
	}
	s.failed, s.done = s.failed[:0], 0
	return nil
}

// finishLine writes the end of a line that is half written.
func (s *stream) finishLine(ctx context.Context) error {
	if s.done == 0 || s.failed[s.done-1] == '\n' {
		return nil
	}
	rest := s.failed[s.done:]
	n, err := s.send(ctx, rest[:bytes.IndexByte(rest, '\n')+1])
	s.done += n
	return err
}

// send writes b and returns the number of bytes that were written. It stops when ctx ends.
func (s *stream) send(ctx context.Context, b []byte) (n int, err error) {
	for n < len(b) {
		if err := s.wait(ctx); err != nil {
			return n, err
		}
		piece := b[n:]
		if len(piece) > s.piece {
			piece = piece[:s.piece]
			if end := bytes.LastIndexByte(piece, '\n') + 1; end > 0 {
				piece = piece[:end]
			}
		}
		m, err := unix.Write(s.fd, piece)
		n += max(m, 0)
		switch err {
		case nil, unix.EINTR, unix.EAGAIN:
		case unix.EPIPE:
			return n, fmt.Errorf("write to %s: %w", s.name, errReaderGone)
		default:
			return n, fmt.Errorf("write to %s: %w", s.name, err)
		}
	}
	return n, nil
}

// wait waits until writing is possible, or until a try would show the error.
func (s *stream) wait(ctx context.Context) error {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n, err := unix.Poll(fds, pollMillis); err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for %s: %w", s.name, err)
		} else if n > 0 {
			return nil
		}
	}
}

func (s *stream) close() error { return unix.Close(s.fd) }
