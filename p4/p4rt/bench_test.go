package p4rt

import (
	"context"
	"fmt"
	"sync"
	"testing"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/pintplan"
)

// BenchmarkFifty changes so many entries in each of 50 emulated switches over P4Runtime, all at once. It writes the
// entries of the new plan, removes those of the old one, and reads them back.
func BenchmarkFifty(b *testing.B) {
	for _, entries := range []int{20, 400} {
		b.Run(fmt.Sprintf("%d", entries), func(b *testing.B) {
			const switches = 50
			info, err := NewInfo(emu.Tables())
			if err == nil {
				info, err = info.ordered(emu.TableOrder()...)
			}
			if err != nil {
				b.Fatal(err)
			}
			p, err := NewPipeline(info, []byte("emulated"))
			if err != nil {
				b.Fatal(err)
			}
			var clients []*Client
			var servers []*p4rttest.Server
			for range switches {
				s := p4rttest.New(device, func(*configpb.P4Info, []byte) (p4rttest.Tables, error) { return p4.NewStore(emu.Tables()), nil })
				servers = append(servers, s)
				address, stop, err := s.Start()
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(stop)
				clients = append(clients, dial(b, Config{Address: address, Plaintext: true, Device: device, Election: Election{Low: 1}, Pipeline: p, Commit: true, Owner: "us"}))
			}
			for _, c := range clients {
				ready(b, c)
			}
			plan := func(epoch uint64) (list []p4.Entry) {
				for n := range uint64(entries - 1) {
					list = append(list, p4.Entry{Table: pintplan.CodeTable, Match: []p4.Match{p4.Number(epoch), p4.Number(0), p4.Between(10*n, 10*n+9)},
						Priority: 1, Action: "round", Params: []p4.Value{p4.Uint(n), p4.Uint(10)}})
				}
				return append(list, p4.Entry{Table: pintplan.PlanTable, Match: []p4.Match{p4.Number(epoch)}, Action: "hold",
					Params: []p4.Value{p4.Uint(24), p4.Uint(7), p4.Uint(uint64(entries))}})
			}
			epoch := uint64(0)
			for b.Loop() {
				epoch++
				want := plan(epoch % 200)
				var all sync.WaitGroup
				for _, c := range clients {
					all.Go(func() {
						if _, err := Reconcile(context.Background(), c, want, ownedBy("us")); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
				b.StopTimer()
				for _, s := range servers {
					s.Writes() // which it keeps otherwise
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(switches*entries), "entries/op")
		})
	}
}
