package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
)

// Source is where frames come from, under the name that metrics, page and log give it.
type Source struct {
	Name string
	ingest.Source
	Metrics []ingest.Metric
}

// Store is a store of series. The collector puts a queue before it, and a spool behind that if there is one.
type Store struct {
	Name   string
	Target string // where it writes, for people: "http://127.0.0.1:8086, bucket hopscope"
	Writer sink.Writer
	Queue  sink.QueueConfig
	Spool  *spool.Config // nil without one
	// RefusedBytes is how much is kept, in the spool's directory, of what the store refuses.
	RefusedBytes int64
	// Alerts says that it is a receiver of alerts: it gets those and no windows.
	Alerts bool
}

// RefusedDir is the directory of the points that the store refuses, or "" for a store without a spool.
func (s *Store) RefusedDir() string {
	if s.Spool == nil {
		return ""
	}
	return RefusedDir(s.Spool.Dir)
}

// RefusedDir is the directory of refused points of a spool.
func RefusedDir(spool string) string { return filepath.Join(spool, "refused") }

// Detector turns windows into findings. It is called from one goroutine, and does not keep the window. The findings are
// valid until the next call.
type Detector interface {
	Step(w *inference.Window) []inference.Finding
}

// The two interfaces below are what makes a settings section one of a source or a store: their packages implement them,
// and the program registers each by one field of its settings struct.

// sourceSection is implemented by the settings of a source. Open gives nil where the settings name nothing to read.
type sourceSection interface {
	Open() (ingest.Source, error)
	Metrics() []ingest.Metric
}

// storeSection is implemented by [StoreConfig].
type storeSection interface {
	open(name string, policy Policy) (*Store, sink.ReportWriter, error)
	openSeries(name string) (*Store, error)
	spoolDir() string
	use() (enabled, publishes bool)
	alerts() bool
}

// StoreConfig is the section of a store of series in the settings of a program: the settings C of the store itself, and
// what the collector puts before it. C has methods SetDefaults, Open and Target, and may have OpenReports, for a stream
// of reports beside the series, Doc, for what it calls its queue and its spool, and Alerts, which says whether it is a
// receiver of alerts rather than a store of series.
type StoreConfig[C any] struct {
	Enabled bool             `yaml:"enabled" doc:"Write to this store."`
	Config  C                `yaml:",inline"`
	Queue   sink.QueueConfig `yaml:"queue" doc:"Between the collector and the store."`
	Spool   SpoolConfig      `yaml:"spool" doc:"What is kept on disk while the store is away."`
}

// SpoolConfig is a spool that can be left out.
type SpoolConfig struct {
	Enabled      bool `yaml:"enabled" doc:"Keep batches on disk until the store has them."`
	spool.Config `yaml:""`
	RefusedBytes int64 `yaml:"refused_bytes" doc:"Most bytes of points that the store refused; they are kept in dir, for hopscope spool. When they are reached the oldest go." range:"1048576..1099511627776"`
}

// SetDefaultsFor leaves the store switched off. Its spool is in a relative directory, so that a service is told by its
// working directory where that is.
func (s *StoreConfig[C]) SetDefaultsFor(key string) {
	*s = StoreConfig[C]{Queue: sink.DefaultQueueConfig(), Spool: SpoolConfig{Enabled: true, Config: spool.DefaultConfig(), RefusedBytes: 64 << 20}}
	s.Spool.Dir = "spool/" + key
	if d, ok := any(&s.Config).(interface{ SetDefaults() }); ok {
		d.SetDefaults()
	}
}

// Validate says nothing about a store that is off.
func (s *StoreConfig[C]) Validate() error {
	if v, ok := any(&s.Config).(interface{ Validate() error }); ok && s.Enabled {
		return v.Validate()
	}
	return nil
}

// CheckFiles reads the files that the settings of the store name, unless it is off.
func (s *StoreConfig[C]) CheckFiles() error {
	if c, ok := any(&s.Config).(interface{ CheckFiles() error }); ok && s.Enabled {
		return c.CheckFiles()
	}
	return nil
}

// Doc implements [settings.Documented].
func (s StoreConfig[C]) Doc(key string) string {
	if d, ok := any(s.Config).(settings.Documented); ok {
		return d.Doc(key)
	}
	return ""
}

// Memory is the most memory of the store's queue, of one write, and of what the store itself keeps.
func (s *StoreConfig[C]) Memory() int64 {
	if !s.Enabled {
		return 0
	}
	const write = 16 << 20 // a record, its request, and their compression
	n := int64(s.Queue.MaxBytes) + write
	if s.Spool.Enabled {
		n += 2 * s.Spool.SegmentBytes
	}
	if m, ok := any(&s.Config).(memorySection); ok {
		n += m.Memory()
	}
	return n
}

// Validate says nothing about a spool that is off.
func (c *SpoolConfig) Validate() error {
	if !c.Enabled {
		return nil
	}
	return c.Config.Validate()
}

// openSeries opens the store alone.
func (s *StoreConfig[C]) openSeries(name string) (*Store, error) {
	if !s.Enabled {
		return nil, nil
	}
	section, ok := any(s.Config).(interface {
		Open() (sink.Writer, error)
		Target() string
	})
	if !ok {
		return nil, fmt.Errorf("%s: %T has no methods Open and Target", name, s.Config)
	}
	w, err := section.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	store := &Store{Name: name, Target: section.Target(), Writer: w, Queue: s.Queue, Alerts: s.alerts()}
	if s.Spool.Enabled {
		store.Spool, store.RefusedBytes = &s.Spool.Config, s.Spool.RefusedBytes
	}
	return store, nil
}

// alerts reports whether the section is that of a receiver of alerts.
func (s *StoreConfig[C]) alerts() bool {
	a, ok := any(&s.Config).(interface{ Alerts() bool })
	return ok && a.Alerts()
}

// spoolDir is the directory of the spool, or "" where there is none.
func (s *StoreConfig[C]) spoolDir() string {
	if !s.Enabled || !s.Spool.Enabled {
		return ""
	}
	return s.Spool.Dir
}

func (s *StoreConfig[C]) open(name string, policy Policy) (*Store, sink.ReportWriter, error) {
	store, err := s.openSeries(name)
	if store == nil || err != nil {
		return nil, nil, err
	}
	r, ok := any(s.Config).(interface {
		OpenReports(sink.Policy) (sink.ReportWriter, error)
	})
	if !ok {
		return store, nil, nil
	}
	reports, err := r.OpenReports(policy.full())
	if err != nil {
		return nil, nil, errors.Join(err, store.Writer.Close())
	}
	return store, reports, nil
}

// OpenSources opens the sources that have a section in the settings struct cfg points to. Nothing is read yet.
func OpenSources(cfg any) (sources []Source, err error) {
	for _, part := range settings.Parts(cfg) {
		section, ok := part.Value.(sourceSection)
		if !ok {
			continue
		}
		src, err := section.Open()
		if err != nil {
			CloseSources(sources)
			return nil, err
		}
		if src != nil {
			sources = append(sources, Source{part.Key, src, section.Metrics()})
		}
	}
	return sources, nil
}

// CloseSources gives back what sources hold that are not run after all.
func CloseSources(sources []Source) error {
	var errs []error
	for _, s := range sources {
		if c, ok := s.Source.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// OpenStores opens the stores that are switched on in the settings struct cfg points to, and the streams of reports that
// belong to them. Nothing is written yet.
func OpenStores(cfg any, policy Policy) (stores []Store, reports []sink.ReportWriter, err error) {
	if err := CheckStores(cfg); err != nil {
		return nil, nil, err
	}
	for _, part := range settings.Parts(cfg) {
		section, ok := part.Value.(storeSection)
		if !ok {
			continue
		}
		store, stream, err := section.open(part.Key, policy)
		if err != nil {
			for _, s := range stores {
				err = errors.Join(err, s.Writer.Close())
			}
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			for _, r := range reports {
				err = errors.Join(err, r.Close(ended))
			}
			return nil, nil, err
		}
		if store != nil {
			stores = append(stores, *store)
		}
		if stream != nil {
			reports = append(reports, stream)
		}
	}
	return stores, reports, nil
}

// OpenStore opens the store of one section of the settings struct cfg points to, for series alone.
func OpenStore(cfg any, name string) (*Store, error) {
	for _, part := range settings.Parts(cfg) {
		if section, ok := part.Value.(storeSection); ok && part.Key == name {
			store, err := section.openSeries(name)
			if store == nil && err == nil {
				err = fmt.Errorf("%s: is switched off in the settings", name)
			}
			return store, err
		}
	}
	return nil, fmt.Errorf("%s: the settings have no such store", name)
}

// Spools gives the directories of the spools that are switched on in the settings struct cfg points to, by the name of
// their store.
func Spools(cfg any) map[string]string {
	dirs := map[string]string{}
	for _, part := range settings.Parts(cfg) {
		if section, ok := part.Value.(storeSection); ok {
			if dir := section.spoolDir(); dir != "" {
				dirs[part.Key] = dir
			}
		}
	}
	return dirs
}

// sourceMetrics lists the metrics of sources by the names under which they are published.
func sourceMetrics(sources []Source) (metrics []Metric) {
	for _, s := range sources {
		for _, m := range s.Metrics {
			metrics = append(metrics, Metric{Name: sourceMetricName(s.Name, m), Help: m.Help, Kind: Counter})
		}
	}
	return metrics
}

// StoreNames lists the stores that have a section in the settings struct cfg points to, whether they are switched on or
// not. Receivers of alerts are none of them.
func StoreNames(cfg any) (names []string) { return sectionNames(cfg, false) }

// ReceiverNames lists the receivers of alerts in the same way.
func ReceiverNames(cfg any) (names []string) { return sectionNames(cfg, true) }

func sectionNames(cfg any, alerts bool) (names []string) {
	for _, part := range settings.Parts(cfg) {
		if s, ok := part.Value.(storeSection); ok && s.alerts() == alerts {
			names = append(names, part.Key)
		}
	}
	return names
}

// OpenReceivers opens the receivers of alerts that are switched on, and gives the error of each that cannot be opened by
// its name.
func OpenReceivers(cfg any) (receivers []Store, failed map[string]error) {
	failed = map[string]error{}
	for _, part := range settings.Parts(cfg) {
		s, ok := part.Value.(storeSection)
		if !ok || !s.alerts() {
			continue
		}
		store, err := s.openSeries(part.Key)
		if err != nil {
			failed[part.Key] = err
		} else if store != nil {
			receivers = append(receivers, *store)
		}
	}
	return receivers, failed
}

func sourceMetricName(source string, m ingest.Metric) string {
	return "hopscope_" + source + "_" + m.Name
}
