package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/otlp"
	"github.com/hopscope/hopscope/ingest"
)

// metrics is the state of a worker that reads requests to export metrics. Such a worker is the only one of its source,
// so that it sees all points of a stream.
type metrics struct {
	*otlp.Decoder
	batch decode.Batch
}

// readMetrics takes the data points of a request on their way, and answers it. However many there are, a batch has no more than others.
func (p *Pipeline) readMetrics(w *Worker, f *ingest.Frame) {
	m := w.metrics.Load()
	if m == nil {
		m = &metrics{Decoder: otlp.New(p.metrics)}
		w.metrics.Store(m)
	}
	broken := ""
	deliver := func() {
		n := uint64(len(m.batch.Reports))
		w.in.AppendBatch(&m.batch)
		m.batch.Reset()
		p.ledger.Receive(ledger.Ring, n)
		p.place(w)
		p.border.RLock()
		p.deliver(w, &w.in)
		p.border.RUnlock()
	}
	got := m.Read(&m.batch, decode.AddrFrom(f.Src.Addr()), f.Data, f.Time, func() {
		if r := m.batch.Reports[0]; broken == "" && r.Err.Field == "request" {
			broken = r.Err.Error()
		}
		if len(m.batch.Reports) == BatchReports {
			deliver()
		}
	})
	deliver()
	foreign := uint64(got.Foreign)
	p.ledger.Receive(ledger.Ring, foreign)
	p.ledger.Move(ledger.Ring, ledger.DroppedForeign, foreign)
	w.counts.foreign.Add(foreign)
	w.counts.resets.Add(uint64(got.Resets))
	if f.Answer != nil {
		f.Answer.Broken = broken
		f.Answer.Refused, f.Answer.Why = refusals(&got)
	}
}

// refusals counts the refused points by reason. Points that came twice are not included: their sender had missed the
// acknowledgement.
func refusals(got *otlp.Result) (n int, why string) {
	var list []string
	for r, k := range got.Refused {
		if reason := decode.Reason(r); k > 0 && reason != decode.Repeated {
			n += k
			list = append(list, fmt.Sprintf("%d %s", k, reason))
		}
	}
	if n == 0 {
		return 0, ""
	}
	return n, fmt.Sprintf("%d of %d data points were refused: %s", n, got.Points, strings.Join(list, ", "))
}

// UnreadMetric is a metric that is not counted at all.
type UnreadMetric struct {
	Name   string // empty for all further ones
	Points uint64
	Why    string // nothing is, where a rule knows it; empty where none does
}

// Text returns how many points came, and why they are not counted or which setting reads them.
func (m *UnreadMetric) Text() string {
	if m.Name == "" {
		return fmt.Sprintf("%d data points of further metrics", m.Points)
	}
	if m.Why != "" {
		return fmt.Sprintf("%s: %d data points, known and not counted: %s", m.Name, m.Points, m.Why)
	}
	return fmt.Sprintf("%s: %d data points; an entry of exporters.metrics.rules with metric: %s, a statistic and the attribute of the interface reads them, and statistic: none hides them", m.Name, m.Points, m.Name)
}

// UnreadMetrics returns the metrics that are not counted at all, those with the most points first.
func (p *Pipeline) UnreadMetrics() (list []UnreadMetric) {
	for _, w := range p.workers {
		if m := w.metrics.Load(); m != nil {
			m.Unread(func(name string, x otlp.Unread) { list = append(list, UnreadMetric{name, x.Points, x.Why}) })
		}
	}
	slices.SortFunc(list, func(a, b UnreadMetric) int {
		if a.Points != b.Points {
			if a.Points > b.Points {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}
