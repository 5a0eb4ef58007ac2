package pcapfile

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// spaced writes a capture whose frames have the given times and returns its path.
func spaced(t *testing.T, times ...time.Duration) string {
	t.Helper()
	var records []frame
	for i, at := range times {
		records = append(records, frame{Data: strings.Repeat("d", i+1), Time: int64(at), Length: 10})
	}
	path := filepath.Join(t.TempDir(), "spaced.pcap")
	if err := os.WriteFile(path, pcapBytes(binary.LittleEndian, magicNano, 1, records...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSourceAsFastAsPossible(t *testing.T) {
	const n = 1000
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = time.Duration(i) * time.Hour
	}
	cfg := DefaultConfig()
	cfg.BatchFrames = 64
	s := NewSource(cfg, spaced(t, times...))
	var next uint64 = 1
	var bytes uint64
	err := s.Run(t.Context(), func(worker int, b *ingest.Batch) {
		if worker != 0 || len(b.Frames) == 0 || len(b.Frames) > 64 {
			t.Fatalf("worker %d, %d frames", worker, len(b.Frames))
		}
		for _, f := range b.Frames {
			if f.Number != next || len(f.Data) != int(next) {
				t.Fatalf("frame %d of %d bytes, want frame %d", f.Number, len(f.Data), next)
			}
			next++
			bytes += uint64(len(f.Data))
		}
	})
	if err != nil || next != n+1 {
		t.Fatalf("%d frames, %v", next-1, err)
	}
	// The first nine frames are shorter than the ten bytes on the wire.
	if got, want := s.Stats(), (ingest.Stats{Frames: n, Bytes: bytes, Truncated: 9}); got != want {
		t.Errorf("Stats() = %+v, want %+v", got, want)
	}
	if read, size := s.progress(); read != size || size == 0 {
		t.Errorf("Progress() = %d, %d at the end", read, size)
	}
}

func TestSourceAtRecordedSpeed(t *testing.T) {
	const ms = time.Millisecond
	path := spaced(t, 5*time.Second, 5*time.Second+10*ms, 5*time.Second+10*ms, 5*time.Second+4*ms, 5*time.Second+time.Hour)
	for _, tt := range []struct {
		speed float64
		want  []time.Duration
	}{
		{1, []time.Duration{0, 10 * ms, 10 * ms, 10 * ms, time.Hour}},
		{2, []time.Duration{0, 5 * ms, 5 * ms, 5 * ms, time.Hour / 2}},
		{0.5, []time.Duration{0, 20 * ms, 20 * ms, 20 * ms, 2 * time.Hour}},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Speed = tt.speed
			begun := time.Now()
			var got []time.Duration
			err := NewSource(cfg, path).Run(t.Context(), func(_ int, b *ingest.Batch) {
				for range b.Frames {
					got = append(got, time.Since(begun))
				}
			})
			if err != nil || len(got) != len(tt.want) {
				t.Fatalf("speed %v: %d frames, %v", tt.speed, len(got), err)
			}
			for i := range got {
				if got[i] < tt.want[i] || got[i] > tt.want[i]+nap {
					t.Errorf("speed %v: frame %d after %v, want %v", tt.speed, i+1, got[i], tt.want[i])
				}
			}
		})
	}
}

func TestSourceEndsWithItsContext(t *testing.T) {
	path := spaced(t, 0, time.Hour)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cfg := DefaultConfig()
		cfg.Speed = 1
		begun, frames := time.Now(), 0
		err := NewSource(cfg, path).Run(ctx, func(_ int, b *ingest.Batch) { frames += len(b.Frames) })
		if err != nil || frames != 1 || time.Since(begun) != time.Minute {
			t.Errorf("%d frames, %v after %v", frames, err, time.Since(begun))
		}
	})

	ctx, cancel := context.WithCancel(t.Context())
	frames := 0
	cfg := DefaultConfig()
	cfg.BatchFrames = 1
	if err := NewSource(cfg, path).Run(ctx, func(_ int, b *ingest.Batch) { frames++; cancel() }); err != nil || frames != 1 {
		t.Errorf("%d batches after the context ended in the first, %v", frames, err)
	}
}

// A pipe whose writer is silent must not keep Run from ending, and neither must one that no writer has opened yet.
func TestSourceEndsWhileItWaitsForAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan int)
	done := make(chan error)
	run := func() {
		done <- NewSource(DefaultConfig(), path).Run(ctx, func(_ int, b *ingest.Batch) { got <- len(b.Frames) })
	}
	go run()
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write(pcapBytes(binary.LittleEndian, magicMicro, 1, frame{Data: "abc", Length: 3})); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != 1 { // handed over at once, although a batch could hold more
		t.Errorf("%d frames", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	w.Close()

	ctx, cancel = context.WithCancel(t.Context())
	go run()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run on a pipe without a writer: %v", err)
	}
}

func TestSourceReportsDamage(t *testing.T) {
	path := spaced(t, 0, 0, 0)
	if err := os.Truncate(path, 24+17+18+16); err != nil {
		t.Fatal(err)
	}
	s, frames := NewSource(DefaultConfig(), path), 0
	err := s.Run(t.Context(), func(_ int, b *ingest.Batch) { frames += len(b.Frames) })
	if e, ok := errors.AsType[*Error](err); !ok || e.Offset != 24+17+18 || e.Record != 3 || e.File != path || frames != 2 {
		t.Errorf("%d frames, %v", frames, err)
	}
	if got := s.Stats(); got.Damaged != 1 || got.Frames != 2 {
		t.Errorf("Stats() = %+v", got)
	}

	s = NewSource(DefaultConfig(), filepath.Join(t.TempDir(), "none.pcap"))
	if err := s.Run(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := NewSource(DefaultConfig(), t.TempDir()).Run(t.Context(), nil); !errors.Is(err, unix.EISDIR) {
		t.Errorf("directory: %v", err)
	}
}
