package udp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// A worker that answers has handed over all frames before the requested time, under load and idle, with several
// sockets a worker. The kernel records when a frame arrived. Without that its time is the one of reading, which may be
// after the answer.
func TestPrompt(t *testing.T) {
	for _, impl := range implementations {
		for _, loaded := range []bool{false, true} {
			t.Run(map[bool]string{false: "idle ", true: "loaded "}[loaded]+impl.name, func(t *testing.T) {
				s, err := impl.open(testConfig("127.0.0.1:0", "127.0.0.1:0"))
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				until := make([]int64, s.Workers())
				answers := make([]int, s.Workers())
				frames := 0
				handle := func(w int, b *ingest.Batch) {
					mu.Lock()
					defer mu.Unlock()
					for i := range b.Frames {
						if at := b.Frames[i].Time; at < until[w] {
							t.Errorf("worker %d handed over a frame of %d ns before it said to have all", w, until[w]-at)
						}
					}
					frames += len(b.Frames)
					if b.Until != 0 {
						until[w] = b.Until
						answers[w]++
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx, handle) }()
				defer s.Close()

				const rounds = 15
				sent := 0
				conns := make([]interface{ Write([]byte) (int, error) }, 0, 8)
				for i := range 8 {
					conns = append(conns, dial(t, s.Addrs()[i%2]))
				}
				var load sync.WaitGroup
				stopLoad := make(chan struct{})
				if loaded {
					for _, c := range conns[:4] {
						load.Go(func() {
							for {
								select {
								case <-stopLoad:
									return
								default:
									_, _ = c.Write(make([]byte, 100))
								}
							}
						})
					}
				}
				p := s.(ingest.Prompter)
				for n := range rounds {
					for _, c := range conns[4:] {
						if _, err := c.Write(make([]byte, 50)); err != nil {
							t.Fatal(err)
						}
						sent++
					}
					before := time.Now().UnixNano()
					if loaded {
						time.Sleep(5 * time.Millisecond) // what is on its way to the queues arrives
					}
					p.Prompt(before)
					testkit.Until(t, fmt.Sprintf("prompt %d is answered", n), func() bool {
						mu.Lock()
						defer mu.Unlock()
						return !slices.ContainsFunc(until, func(at int64) bool { return at != before })
					})
					if !loaded && impl.name == "portable" {
						testkit.Until(t, fmt.Sprintf("all frames before prompt %d are read", n), func() bool {
							mu.Lock()
							defer mu.Unlock()
							return frames == sent
						})
					}
					if mu.Lock(); !loaded && frames != sent {
						t.Errorf("prompt %d was answered with %d of %d frames handed over", n, frames, sent)
					}
					mu.Unlock()
				}
				close(stopLoad)
				load.Wait()
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				p.Prompt(1) // no worker answers any more, and nothing happens
				for w, n := range answers {
					if n != rounds {
						t.Errorf("worker %d answered %d times", w, n)
					}
				}
			})
		}
	}
}
