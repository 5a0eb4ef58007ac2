package p4rt

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/program"
)

const device = 3

// bench is an emulated switch behind P4Runtime.
type bench struct {
	*p4rttest.Server
	address string
	stop    func()
	mu      sync.Mutex
	sw      *program.Switch // the program that was loaded last
}

// newBench starts a switch without a program.
func newBench(t testing.TB, name string) *bench {
	t.Helper()
	b := &bench{}
	b.Server = p4rttest.New(device, func(_ *configpb.P4Info, code []byte) (p4rttest.Tables, error) {
		if len(code) == 0 {
			return nil, fmt.Errorf("no program")
		}
		s, err := program.New(name)
		if err != nil {
			return nil, err
		}
		b.mu.Lock()
		b.sw = s
		b.mu.Unlock()
		return s.Store(), nil
	})
	var err error
	if b.address, b.stop, err = b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stop)
	return b
}

// config is one of a controller that loads the program.
func (b *bench) config(t testing.TB, name string) Config {
	return Config{Address: b.address, Plaintext: true, Device: device, Election: Election{Low: 7}, Pipeline: pipeline(t, name), Commit: true,
		Owner: "us", ownSessions: [2]uint32{100, 199}, Timeout: time.Minute, firstWait: time.Millisecond, mostWait: 20 * time.Millisecond, checkEvery: 20 * time.Millisecond}
}

func dial(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ready waits for a client.
func ready(t testing.TB, c *Client) *Client {
	t.Helper()
	if err := c.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

// within is longer than anything takes that comes.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

// until waits for something that will be.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	testkit.Until(t, what, is)
}

// route is an entry of intmd.p4, for the n-th network.
func route(n, port uint64) p4.Entry {
	return p4.Entry{Table: "ingress.forward.forwarding4", Match: []p4.Match{{Value: p4.Uint(10<<24 | n<<8), Prefix: 24}}, Action: "forward",
		Params: []p4.Value{p4.Uint(port), p4.Uint(0x020000000001), p4.Uint(0x020000000002)}}
}

func inserts(entries ...p4.Entry) (list []Update) {
	for _, e := range entries {
		list = append(list, Update{Insert, e})
	}
	return list
}

// content is what the switch holds of a table, by its sentences.
func (b *bench) content(name string) (list []string) {
	b.Inspect(func(t p4rttest.Tables) {
		if t == nil {
			return
		}
		for _, e := range t.Read(name) {
			list = append(list, e.String())
		}
	})
	return list
}
