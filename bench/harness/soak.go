package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
)

// Soak finds the highest rate that a collector with all stores takes without loss, and then runs a new one at a share
// of it. Both are the program that users run, with the set-up "stores" of [Sizing] and its load.
type Soak struct {
	Sizing
	Trial  time.Duration // of a rate
	Length time.Duration // of the run
	Settle time.Duration // after which memory is to be flat; shorter than Length
	Share  float64       // of the rate without loss
}

// SoakResult is what a collector took at a steady rate. Rates are reports a second.
type SoakResult struct {
	LossFree, Rate float64
	Length         time.Duration
	Sent, Received uint64
	Dropped        map[string]float64 // reports by sink and stage; none where nothing was dropped
	Stored         map[string]float64 // reports by sink
	Memory         []float64          // resident, MB, of ten parts of the run: medians
	Early, Late    float64            // of a fifth of the run after Settle, and of its last fifth: medians
	Cores          float64            // processor time a second, while reports are sent
	Missed         float64            // reports that exporters' numbers show as lost
	Backlog        uint64             // datagrams of all programs that the kernel dropped before any socket
}

// Lost is the number of reports that were sent and are not stored in every sink.
func (r *SoakResult) Lost() float64 {
	least := float64(r.Received)
	for _, n := range r.Stored {
		least = min(least, n)
	}
	return float64(r.Sent) - least
}

// Print writes a table.
func (r *SoakResult) Print(w io.Writer) error {
	t := Columns(w, 2, tabwriter.AlignRight)
	fmt.Fprintln(t, "value\tmeasured\t")
	fmt.Fprintf(t, "reports a second without loss, trials\t%.0f\t\n", r.LossFree)
	fmt.Fprintf(t, "reports a second of the run\t%.0f\t\n", r.Rate)
	fmt.Fprintf(t, "minutes\t%.1f\t\n", r.Length.Minutes())
	fmt.Fprintf(t, "reports sent\t%d\t\n", r.Sent)
	for _, sink := range sortedKeys(r.Stored) {
		fmt.Fprintf(t, "reports stored, %s\t%.0f\t\n", sink, r.Stored[sink])
	}
	fmt.Fprintf(t, "reports lost\t%.0f\t\n", r.Lost())
	for _, at := range sortedKeys(r.Dropped) {
		fmt.Fprintf(t, "dropped, %s\t%.0f\t\n", at, r.Dropped[at])
	}
	fmt.Fprintf(t, "lost by the numbers of exporters\t%.0f\t\n", r.Missed)
	fmt.Fprintf(t, "dropped before any socket, of all programs\t%d\t\n", r.Backlog)
	fmt.Fprintf(t, "processor time, cores\t%.2f\t\n", r.Cores)
	for i, m := range r.Memory {
		fmt.Fprintf(t, "memory, part %d of %d, MB\t%.0f\t\n", i+1, len(r.Memory), m)
	}
	fmt.Fprintf(t, "memory, last fifth over the one after the settling\t%.3f\t\n", r.Late/r.Early)
	return t.Flush()
}

func sortedKeys(m map[string]float64) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Soak searches and runs. Progress gets what is measured.
func (o *Soak) Soak(ctx context.Context, progress func(string)) (*SoakResult, error) {
	var r SoakResult
	err := o.with(ctx, func(to netip.AddrPort, m *metrics, gen traffic.Datagrams) (err error) {
		r.LossFree, err = o.search(ctx, progress, to, m, gen)
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.LossFree == 0 {
		return nil, errors.New("reports were lost at every rate")
	}
	err = o.with(ctx, func(to netip.AddrPort, m *metrics, gen traffic.Datagrams) error {
		return o.run(ctx, &r, progress, to, m, gen)
	})
	return &r, err
}

// with calls f with a collector of its own, which ends with f.
func (o *Soak) with(ctx context.Context, f func(to netip.AddrPort, m *metrics, gen traffic.Datagrams) error) (err error) {
	s := &setups[slices.IndexFunc(setups, func(s setup) bool { return s.stores })]
	dir, err := os.MkdirTemp("", "hopscope-soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	influx := ""
	if o.Influxd != "" {
		stop, address, err := startInflux(ctx, o.Influxd, filepath.Join(dir, "influxdb"))
		if err != nil {
			return err
		}
		defer stop()
		influx = address
	}
	to, page, err := freePorts()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "hopscope.yaml")
	if err := os.WriteFile(file, []byte(s.settings(to, page, dir, influx)), 0o600); err != nil {
		return err
	}
	ended, m, err := o.start(ctx, file, page)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ended()) }()
	gen, err := s.datagrams()
	if err != nil {
		return err
	}
	return f(to, m, gen)
}

// Steps of the search.
const (
	soakFirst   = 10_000.0 // reports a second
	soakStep    = 1.1      // the rates with and without loss are that near in the end
	soakGrowth  = 1.2      // of the sender by twice the rate, if it is not at its limit
	soakRepeats = 2        // of a rate that lost: other programs may have had the processor
)

// search doubles the rate until reports are lost or the sender does not follow, and halves the interval then.
func (o *Soak) search(ctx context.Context, progress func(string), to netip.AddrPort, m *metrics, gen traffic.Datagrams) (good float64, err error) {
	passes := func(rate float64) (reached float64, ok bool, err error) {
		for range soakRepeats {
			progress(fmt.Sprintf("%.0f reports a second", rate))
			before, err := m.read(ctx)
			if err != nil {
				return 0, false, err
			}
			sent, err := traffic.Send(ctx, traffic.SendConfig{To: to, Rate: rate, Duration: o.Trial}, gen)
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return 0, false, err
			}
			after, err := m.await(ctx, receipt, func(v map[string]float64) bool { return received(v)-received(before) >= float64(sent.Sent) })
			if err != nil {
				return 0, false, err
			}
			if received(after)-received(before) >= float64(sent.Sent) && sum(dropped(after)) == sum(dropped(before)) {
				return sent.Rate(), true, nil
			}
		}
		return 0, false, nil
	}
	most, bad := 0.0, 0.0 // the highest rate that the sender reached
	for rate := soakFirst; bad == 0 || bad > good*soakStep && bad > soakFirst/100; {
		reached, ok, err := passes(rate)
		switch {
		case err != nil:
			return 0, err
		case !ok:
			bad = rate
		case reached < rate*0.95 && (bad > 0 || reached < most*soakGrowth):
			return max(reached, most), nil // the sender is at its limit
		default:
			good = rate
			most = max(most, reached)
		}
		if rate *= 2; bad > 0 {
			rate = (good + bad) / 2
		}
	}
	return min(good, most), nil
}

// soakParts are the parts of a run whose memory is printed.
const soakParts = 10

// receipt is how long a collector may take to count what was sent, and settlement how long its stores may take.
const (
	receipt    = 5 * time.Second
	settlement = 2 * time.Minute
)

// run sends at a share of the rate without loss, and samples memory.
func (o *Soak) run(ctx context.Context, r *SoakResult, progress func(string), to netip.AddrPort, m *metrics, gen traffic.Datagrams) error {
	rate := r.LossFree * o.Share
	progress(fmt.Sprintf("%v at %.0f reports a second", o.Length, rate))
	type sample struct {
		at     time.Duration
		memory float64
	}
	var samples []sample
	var failed error
	begin, err := m.read(ctx)
	if err != nil {
		return err
	}
	every := min(time.Second, o.Length/(4*soakParts))
	backlog := backlogDrops()
	began, sampled := time.Now(), make(chan struct{})
	sampling, stop := context.WithCancel(ctx)
	go func() {
		defer close(sampled)
		for failed == nil {
			select {
			case <-sampling.Done():
				return
			case <-time.After(every):
			}
			v, err := m.read(ctx)
			if failed = err; err == nil {
				samples = append(samples, sample{time.Since(began), v["process_resident_memory_bytes"] / 1e6})
			}
		}
	}()
	sent, err := traffic.Send(ctx, traffic.SendConfig{To: to, Rate: rate, Duration: o.Length}, gen)
	stop()
	<-sampled
	if err = errors.Join(err, failed, context.Cause(ctx)); err != nil {
		return err
	}
	end, err := m.read(ctx)
	if err != nil {
		return err
	}
	r.Cores = (end[processorSeconds] - begin[processorSeconds]) / sent.Elapsed.Seconds()
	last, err := m.await(ctx, settlement, func(v map[string]float64) bool { return settled(v, sent.Sent) })
	if err != nil {
		return err
	}
	r.Backlog = backlogDrops() - backlog
	r.Missed = last["hopscope_exporter_lost"]
	within := func(from, to time.Duration) (list []float64) {
		for _, s := range samples {
			if s.at >= from && s.at < to {
				list = append(list, s.memory)
			}
		}
		return list
	}
	for i := range time.Duration(soakParts) {
		r.Memory = append(r.Memory, Median(within(sent.Elapsed*i/soakParts, sent.Elapsed*(i+1)/soakParts)))
	}
	fifth := sent.Elapsed / 5
	r.Early, r.Late = Median(within(o.Settle, o.Settle+fifth)), Median(within(sent.Elapsed-fifth, sent.Elapsed))
	r.Rate, r.Length, r.Sent, r.Received = sent.Rate(), sent.Elapsed, sent.Sent, uint64(received(last))
	r.Dropped, r.Stored = dropped(last), stored(last)
	return nil
}

// await reads metrics until they are enough, for a time at the most, and returns the last ones.
func (m *metrics) await(ctx context.Context, most time.Duration, enough func(map[string]float64) bool) (v map[string]float64, err error) {
	for end := time.Now().Add(most); ; time.Sleep(200 * time.Millisecond) {
		if v, err = m.read(ctx); err != nil || enough(v) || time.Now().After(end) {
			return v, err
		}
	}
}

// received is the number of reports that a collector received, with those that the kernel dropped.
func received(v map[string]float64) float64 {
	return v[`hopscope_ledger_received_total{sink="parquet"}`]
}

// stored are the reports that each sink has stored.
func stored(v map[string]float64) map[string]float64 {
	return bySink(v, "hopscope_ledger_stored_total{sink=")
}

// settled reports whether each sink has stored or dropped so many reports.
func settled(v map[string]float64, reports uint64) bool {
	done, drops := stored(v), dropped(v)
	for sink, n := range done {
		for at, d := range drops {
			if strings.HasPrefix(at, sink+" ") {
				n += d
			}
		}
		if n < float64(reports) {
			return false
		}
	}
	return true
}

// dropped are the dropped reports by sink and stage, where there are any.
func dropped(v map[string]float64) map[string]float64 {
	m := bySink(v, "hopscope_ledger_dropped_total{sink=")
	for k, n := range m {
		if n == 0 {
			delete(m, k)
		}
	}
	return m
}

// bySink are the metrics of a name, by their labels.
func bySink(v map[string]float64, name string) map[string]float64 {
	m := map[string]float64{}
	for k, n := range v {
		if labels, ok := strings.CutPrefix(k, name); ok {
			m[strings.NewReplacer(`"`, "", "}", "", ",stage=", " ").Replace(labels)] = n
		}
	}
	return m
}

func sum(m map[string]float64) (n float64) {
	for _, v := range m {
		n += v
	}
	return n
}

// backlogDrops are the packets that the queues of processors had no room for, before any socket; 0 where the system does not count.
func backlogDrops() (n uint64) {
	b, _ := os.ReadFile("/proc/net/softnet_stat")
	for line := range strings.Lines(string(b)) {
		if words := strings.Fields(line); len(words) > 1 {
			v, _ := strconv.ParseUint(words[1], 16, 64)
			n += v
		}
	}
	return n
}
