package stores

import (
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// Limits lists every limit of the stores, their queues and their spools, given the balance of each store.
func (s *Set) Limits(balances []sink.Balance) (list []inference.Limit) {
	dropped := map[string]uint64{}
	for _, b := range balances {
		dropped[b.Sink] = uint64(b.Dropped[ledger.DroppedSinkQueue.String()])
	}
	for _, q := range s.All() {
		name, st := q.Name(), q.Stats()
		full := inference.Limit{Setting: name + ".queue.max_bytes and " + name + ".queue.max_batches", N: dropped[name], What: "reports were dropped, because the queue of " + name + " was full"}
		if q.Alerts { // which no report is in
			full.N, full.What = st.PointsDropped, "alerts were dropped, because the queue of "+name+" was full"
		}
		list = append(list, full)
		if st.Spool != nil {
			list = append(list, inference.Limit{Setting: name + ".spool.max_bytes", N: st.Spool.EvictedPoints, What: "points left the spool of " + name + " before they were stored, because it was full"})
		}
		if st.Refused != nil {
			list = append(list, inference.Limit{Setting: name + ".spool.refused_bytes", N: st.Refused.EvictedPoints, What: "points that " + name + " refused are not kept, because there were too many"})
		}
		if w, ok := q.Writer.(sink.Limited); ok {
			list = append(list, w.Limits()...)
		}
	}
	return list
}

// mRemoved is the metric of stores that remove stored points.
var mRemoved = metrics.NewCounter("hopscope_sink_removed_total", "Files and their contents removed by the limit of kept files.", "sink", "unit")

// RemovedMetrics are the metrics of EmitRemoved.
var RemovedMetrics = []metrics.Metric{mRemoved}

// EmitRemoved returns the values of RemovedMetrics, for the stores that remove anything.
func (s *Set) EmitRemoved(emit metrics.Emit) {
	for _, q := range s.All() {
		if r, ok := q.Writer.(sink.Remover); ok {
			files, points := r.Removed()
			emit(mRemoved, float64(files), q.Name(), "files")
			emit(mRemoved, float64(points), q.Name(), "points")
		}
	}
}
