package ingest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// thread returns the CPUs of the calling thread.
func thread(t *testing.T) (list []uint16) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range uint16(1024) {
		if set.IsSet(int(cpu)) {
			list = append(list, cpu)
		}
	}
	return list
}

// Workers run on their CPUs in turns, and the threads are free again behind them.
func TestCPUs(t *testing.T) {
	own := thread(t)
	for _, cpus := range [][]uint16{nil, own[:1], own} {
		const workers = 5
		c, err := NewCrew("test", workers, cpus)
		if err != nil {
			t.Fatal(err)
		}
		check := func(worker int) {
			got, want := thread(t), own
			if len(cpus) > 0 {
				want = cpus[worker%len(cpus):][:1]
			}
			if len(got) != len(want) || got[0] != want[0] {
				t.Errorf("of %v, worker %d has %v, want %v", cpus, worker, got, want)
			}
		}
		if err := c.On(3, func() error { check(3); return nil }); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup // so that each has a thread of its own
		all.Add(workers)
		err = c.Run(context.Background(), func(worker int) error {
			check(worker)
			all.Done()
			all.Wait()
			return nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			all.Go(func() {
				if got := thread(t); len(got) != len(own) {
					t.Errorf("a thread has %v afterwards, want %v", got, own)
				}
			})
		}
		all.Wait()
	}
	_, err := NewCrew("udp", 1, []uint16{own[0], 1023})
	if err == nil || !strings.Contains(err.Error(), "udp.cpus: CPU 1023 is none of the") {
		t.Errorf("with CPU 1023: %v", err)
	}
}
