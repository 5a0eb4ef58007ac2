package spool

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The disk is full. Append returns that, nothing else happens, and when there is room again it continues.
func TestDiskFull(t *testing.T) {
	for _, noCut := range []bool{false, true} {
		d := newMemDisk()
		c := testConfig("mem")
		s := mustOpen(t, c, d)
		for i := range 20 {
			mustAppend(t, s, i+1, 100)
		}
		d.capacity, d.noCut = d.used()+50, noCut // in the middle of the next record
		for range 3 {
			if err := s.Append(99, 1, payload(99, 100)); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("Append to a full disk = %v", err)
			}
		}
		st := s.Stats()
		if st.RefusedRecords != 3 || st.Records != 20 || !strings.Contains(st.LastError, "no space left") || st.lastErrorTime.IsZero() {
			t.Errorf("Stats = %+v", st)
		}
		records := drain(t, s)
		if !slices.Equal(numbers(records), sequence(1, 20)) {
			t.Fatalf("read %v from a full disk", numbers(records))
		}
		s.Commit(records[9].End) // the head cannot be written, which stops nothing
		d.capacity, d.noCut = 1<<40, false
		mustAppend(t, s, 21, 100)
		if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{21}) {
			t.Fatalf("read %v behind the full disk", got)
		}
		s.Sync()
		s.Close()
		s = mustOpen(t, c, d)
		if got := numbers(drain(t, s)); !slices.Equal(got, sequence(11, 21)) {
			t.Fatalf("noCut %t: read %v after reopening", noCut, got)
		}
	}
}

func TestSyncFails(t *testing.T) {
	d := newMemDisk()
	c := testConfig("mem")
	c.Sync = "each"
	s := mustOpen(t, c, d)
	mustAppend(t, s, 1, 10)
	d.noSync = true
	if err := s.Append(2, 1, payload(2, 10)); !errors.Is(err, syscall.EIO) {
		t.Errorf("Append = %v, want the error of the sync", err)
	}
	d.noSync = false
	mustAppend(t, s, 3, 10)
	if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{1, 3}) {
		t.Errorf("read %v", got)
	}
}

// syncs counts the syncs of a disk.
func (d *memDisk) countSyncs() *int {
	n := new(int)
	d.done = func(what, name string) {
		if what == "sync" {
			*n++
		}
	}
	return n
}

func TestSyncPolicy(t *testing.T) {
	for policy, want := range map[string][2]int{"each": {10, 10}, "interval": {5, 16}, "never": {0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemDisk()
			c := testConfig("mem")
			c.Sync, c.SyncInterval = policy, time.Second
			s := mustOpen(t, c, d)
			mustAppend(t, s, 1, 1) // makes the segment
			n := d.countSyncs()
			for i := range 10 {
				time.Sleep(400 * time.Millisecond)
				mustAppend(t, s, i+2, 1)
				if i%2 == 1 {
					time.Sleep(time.Second)
					s.Sync()
					s.Sync()
				}
			}
			if *n < want[0] || *n > want[1] {
				t.Errorf("sync: %s: %d syncs, want %v", policy, *n, want)
			}
			if policy == "never" {
				mustAppend(t, s, 12, 3000)
				mustAppend(t, s, 13, 3000) // makes another segment
				if s.Close(); *n > 0 {
					t.Errorf("sync: %s: %d syncs with the next segment and the end", policy, *n)
				}
			}
		})
	}
}

// Everything at random against a list: append, read, commit, close and open, crash.
func TestModel(t *testing.T) {
	seed := testkit.Seed(t)
	for round := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, round))
		where := fmt.Sprintf("seed %d round %d", seed, round)
		d := newMemDisk()
		c := testConfig("mem")
		c.MaxBytes = c.SegmentBytes * int64(4+r.IntN(20))
		s := mustOpen(t, c, d)
		var (
			model     []uint64 // appended and not committed, lost ones among them
			read      []Record
			next      = uint64(1)
			in, out   uint64 // reports
			lost      uint64
			committed uint64
		)
		for step := range 1500 {
			switch op := r.IntN(100); {
			case op < 45:
				if err := s.Append(next, 1, payload(int(next), r.IntN(900))); err != nil {
					t.Fatalf("%s step %d: %v", where, step, err)
				}
				model = append(model, next)
				in += next
				next++
			case op < 80:
				rec, err := s.Read(nil)
				if errors.Is(err, errEmpty) {
					break
				}
				i := slices.Index(model, rec.Reports)
				if i < 0 || len(read) > 0 && rec.Reports <= read[len(read)-1].Reports || rec.Reports <= committed ||
					!bytes.HasPrefix(rec.Payload, fmt.Appendf(nil, "record %d ", rec.Reports)) {
					t.Fatalf("%s step %d: read %d %.20q, last %v", where, step, rec.Reports, rec.Payload, numbers(read))
				}
				read = append(read, rec)
			case op < 97:
				if len(read) == 0 {
					break
				}
				k := r.IntN(len(read))
				out += s.Commit(read[k].End).Reports
				committed = read[k].Reports
				read = read[k+1:]
				for len(model) > 0 && model[0] <= committed {
					model = model[1:]
				}
			default:
				lost += s.DrainLost().Reports
				if r.IntN(2) == 0 {
					s.Close()
				} // else a crash: nothing is closed
				s = mustOpen(t, c, d)
				read = read[:0]
			}
			lost += s.DrainLost().Reports
			if st := s.Stats(); in != out+lost+st.Reports || st.Bytes > c.MaxBytes || st.damagedBytes+st.TornBytes != 0 {
				t.Fatalf("%s step %d: in %d, out %d, lost %d, %+v", where, step, in, out, lost, st)
			}
		}
		// What was not read yet is the end of the model, whole. What was read may have been evicted since.
		left := numbers(drain(t, s))
		if len(left) > len(model) || !slices.Equal(left, model[len(model)-len(left):]) {
			t.Fatalf("%s: left %v, want the end of %v", where, left, model)
		}
		if lost == 0 && len(read)+len(left) != len(model) {
			t.Fatalf("%s: nothing was lost, yet %d and %d of %d are left", where, len(read), len(left), len(model))
		}
	}
}

func TestStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes.txt", "1.seg", "00000000000000000002.seg.bak", "99999999999999999999.seg"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, testConfig(dir), nil)
	mustAppend(t, s, 1, 1)
	if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("read %v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	c := DefaultConfig()
	c.Dir = "x"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c = Config{MaxBytes: 100, SegmentBytes: 26}
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("Validate = %v, want two problems", err)
	}
}
