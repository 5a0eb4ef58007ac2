package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const quarantineDir = "quarantine"

// event is something that was found in the directory, or that the disk did, for a log.
type event struct {
	Kind    string // damaged, torn, missing, duplicate, state, quarantine or sync
	Segment string // name of the file; empty where there is none
	Offset  int64  // of the first byte
	Bytes   int64
	Records uint64 // that are gone and were not stored, where it is known
	Lost    Lost   // what these stood for
	Message string
}

// maxEvents bounds the memory of events that no caller takes.
const maxEvents = 256

func (s *Spool) logEvent(e event) {
	if len(s.events) == maxEvents {
		s.unevented++
		return
	}
	s.events = append(s.events, e)
}

// Events returns the damage found and the other events since the last call.
func (s *Spool) Events() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	if s.unevented > 0 {
		events = append(events, event{Kind: "more", Message: fmt.Sprintf("%d more events were not kept; the counts hold them", s.unevented)})
	}
	s.events, s.unevented = nil, 0
	return events
}

// quarantine copies damaged bytes aside, so that they outlive the segment. Where they cannot be copied the whole segment
// is kept.
func (s *Spool) quarantine(g *segment, f io.ReaderAt, off, n int64) bool {
	if n <= 0 || g.mem != nil || g.aside[off] {
		return true
	}
	if g.aside == nil {
		g.aside = map[int64]bool{}
	}
	g.aside[off] = true
	err := s.copyAside(g.name, f, off, n)
	if errors.Is(err, errQuarantineFull) {
		s.logEvent(event{Kind: "quarantine", Segment: g.name, Offset: off, Bytes: n, Message: err.Error()})
		return true
	}
	if err != nil {
		g.keep = true
		s.failed(err)
		s.logEvent(event{Kind: "quarantine", Segment: g.name, Offset: off, Bytes: n, Message: "damaged bytes cannot be copied, so that the whole segment is kept: " + err.Error()})
	}
	return err == nil
}

var errQuarantineFull = errors.New("quarantine holds as much as the spool may: damaged bytes are kept no more; move its files away")

func (s *Spool) copyAside(from string, f io.ReaderAt, off, n int64) error {
	if err := s.makeQuarantine(); err != nil {
		return err
	}
	name := fmt.Sprintf("%s/%s-%d.bad", quarantineDir, from, off)
	for i := 1; ; i++ {
		in, err := s.disk.stat(name)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		if !in.dir && in.size == n && from != stateName || i > 9 { // copied by an earlier run
			return nil
		}
		name = fmt.Sprintf("%s/%s-%d.%d.bad", quarantineDir, from, off, i)
	}
	if s.stats.Quarantined+n > s.conf.MaxBytes {
		return errQuarantineFull
	}
	out, err := s.disk.open(name, true)
	if err != nil {
		return err
	}
	buf := make([]byte, min(n, scanBytes))
	for done := int64(0); done < n && err == nil; {
		b := buf[:min(n-done, scanBytes)]
		if _, err = f.ReadAt(b, off+done); err == nil || errors.Is(err, io.EOF) {
			_, err = out.WriteAt(b, done)
		}
		done += int64(len(b))
	}
	if err == nil {
		err = s.syncFile(out, name)
	}
	err = errors.Join(err, out.Close())
	if err == nil {
		err = s.syncDir(quarantineDir)
	}
	if err != nil {
		return errors.Join(err, s.disk.remove(name))
	}
	s.stats.Quarantined += n
	return nil
}

func (s *Spool) makeQuarantine() error {
	in, err := s.disk.stat(quarantineDir)
	if err == nil && in.dir {
		return nil
	}
	if err == nil {
		return fmt.Errorf("%s is no directory", quarantineDir)
	}
	if err := s.disk.mkdir(quarantineDir); err != nil {
		return err
	}
	return s.syncDir("")
}

// setAside moves a whole file into the quarantine, or renames it where that fails.
func (s *Spool) setAside(name string, size int64) {
	err := s.makeQuarantine()
	to := quarantineDir + "/" + name
	for i := 1; err == nil && i < 10; i++ {
		if _, err := s.disk.stat(to); errors.Is(err, os.ErrNotExist) {
			break
		}
		to = fmt.Sprintf("%s/%s.%d", quarantineDir, name, i)
	}
	if err == nil {
		if err = s.disk.rename(name, to); err == nil {
			s.stats.Quarantined += size
			if err := errors.Join(s.syncDir(quarantineDir), s.syncDir("")); err != nil {
				s.failed(err)
			}
			return
		}
	}
	s.failed(err)
	s.logEvent(event{Kind: "quarantine", Segment: name, Bytes: size, Message: "cannot be moved into the quarantine and stays where it is: " + err.Error()})
}

// countQuarantine finds out what earlier runs kept aside.
func (s *Spool) countQuarantine(names []string) (segments map[uint64]bool) {
	segments = map[uint64]bool{}
	count := func(name string) {
		if in, err := s.disk.stat(name); err == nil && !in.dir {
			s.stats.Quarantined += in.size
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".bad") {
			count(name)
		}
	}
	inside, err := s.disk.list(quarantineDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.failed(err)
	}
	for _, name := range inside {
		count(quarantineDir + "/" + name)
		if n, version := parseSegmentName(name); version != 0 {
			segments[n] = true
		}
	}
	return segments
}
