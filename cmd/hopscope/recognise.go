package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/pcapfile"
)

// dialectLines returns a sentence for each sender whose frames its profile did not decode, with the flags that do.
func dialectLines(list []guess.Finding) (lines []string) {
	for i := range list {
		if i == summary.MostDialects {
			return append(lines, fmt.Sprintf("and %d more senders that cannot be read", len(list)-i))
		}
		lines = append(lines, list[i].String()+readWith(&list[i]))
	}
	return lines
}

// readWith returns the flags of "hopscope decode" that read what f explains, as the end of its sentence. It is empty where
// there are none.
func readWith(f *guess.Finding) string {
	if len(f.Profiles) == 0 || f.State == guess.Unknown || f.GRE != 0 || f.Port != 0 && f.Content == guess.PathContent {
		return ""
	}
	flags := "--profile " + f.Profiles[0]
	if f.Port != 0 {
		flags += fmt.Sprintf(" --report-port %d", f.Port)
	}
	return "; here: " + flags
}

// mostLookedAt bounds how many frames of a capture are looked at before it is replayed.
const mostLookedAt = 200_000

// lookAhead reads the beginning of captures before they are replayed. It finds dialects for reports that the profiles
// of their senders cannot decode, so that these apply from the first frame. A pipe cannot be read twice.
func lookAhead(ctx context.Context, files []string, router *demux.Router, e *collector.Exporters) (*guess.Watch, error) {
	candidates, err := e.Candidates()
	if err != nil {
		return nil, err
	}
	watch := guess.NewWatch(candidates, true)
	for _, file := range files {
		lookAt(ctx, file, router, watch)
	}
	watch.Settle(router.Profile)
	return watch, nil
}

func lookAt(ctx context.Context, file string, router *demux.Router, watch *guess.Watch) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return // its reader reports the error
	}
	r, err := pcapfile.OpenContext(ctx, file)
	if err != nil {
		return
	}
	defer r.Close()
	var in ingest.Batch
	var out decode.LazyBatch
	var last []*decode.Report
	for frames := 0; frames < mostLookedAt && ctx.Err() == nil; frames += len(in.Frames) {
		err := r.ReadBatch(&in, 256)
		for i := range in.Frames {
			f := &in.Frames[i]
			out.Reset()
			last = last[:0]
			if n := router.LazyFrame(&out, f.Link, f.Data, f.Length, f.Time); n > 0 {
				r := out.List[n-1]
				if r.Clear() && !watch.Watching() {
					continue
				}
				last = append(last, r.Report())
			}
			x := guess.Sample{Link: f.Link, Data: f.Data, Length: f.Length, Time: f.Time}
			x.To.Number, x.To.Only = router.LastPort()
			watch.Look(router.Profile, x, last)
		}
		if err != nil {
			break
		}
	}
}
