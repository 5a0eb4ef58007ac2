package spool

import (
	"errors"
	"slices"
	"syscall"
	"testing"
)

// A real file system of half a megabyte, where there is the right to mount one.
func TestDiskFullTmpfs(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no right to mount a small file system (%v); TestDiskFull does it in memory", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	c := testConfig(dir)
	c.SegmentBytes = 64 << 10
	s := mustOpen(t, c, nil)
	i := 0
	var err error
	for ; i < 2000 && err == nil; i++ {
		err = s.Append(uint64(i+1), 1, payload(i+1, 1000))
	}
	full := uint64(i - 1)
	if !errors.Is(err, syscall.ENOSPC) || full == 0 {
		t.Fatalf("after %d records: %v", full, err)
	}
	records := drain(t, s)
	if !slices.Equal(numbers(records), sequence(1, full)) {
		t.Fatalf("read %d of %d records", len(records), full)
	}
	s.Commit(records[len(records)/2].End) // frees segments
	mustAppend(t, s, int(full)+1, 1000)
	s.Close()
	s = mustOpen(t, c, nil)
	if got := numbers(drain(t, s)); !slices.Equal(got, sequence(uint64(len(records)/2)+2, full+1)) {
		t.Errorf("read %d to %d after reopening", got[0], got[len(got)-1])
	}
}
