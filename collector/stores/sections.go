package stores

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
)

// Store is a store of series. The collector puts a queue before it, and a spool behind that if there is one.
type Store struct {
	Name   string
	Target string // where it writes, for display: "http://127.0.0.1:8086, bucket hopscope"
	Writer sink.Writer
	Queue  sink.QueueConfig
	Spool  *spool.Config // nil without one
	// RefusedBytes is the most that is kept, in the spool's directory, of refused points, in bytes.
	RefusedBytes int64
	// Alerts is set for a receiver of alerts: it gets those and no windows.
	Alerts bool
}

// refusedDir is the directory of the points that the store refuses, or "" for a store without a spool.
func (s *Store) refusedDir() string {
	if s.Spool == nil {
		return ""
	}
	return RefusedDir(s.Spool.Dir)
}

// RefusedDir is the directory of refused points of a spool.
func RefusedDir(spool string) string { return filepath.Join(spool, "refused") }

// section is implemented by [Config].
type section interface {
	open(name string, full sink.Policy) (*Store, sink.ReportWriter, error)
	openSeries(name string) (*Store, error)
	spoolDir() string
	use() (enabled, publishes bool)
	alerts() bool
}

// Config is the section of a store of series in the settings of a program. It has the settings C of the store itself,
// and those of what the collector puts before it. C has methods SetDefaults, Open and Target. It may have OpenReports,
// for a stream of reports beside the series, and Doc, for the help texts of its queue and its spool. Its method Alerts
// reports whether it is a receiver of alerts rather than a store of series.
type Config[C any] struct {
	Enabled bool             `yaml:"enabled" doc:"Write to this store."`
	Config  C                `yaml:",inline"`
	Queue   sink.QueueConfig `yaml:"queue" shared:"Queue" doc:"Memory for batches that wait for the store or receiver."`
	Spool   SpoolConfig      `yaml:"spool" shared:"Spool" doc:"Batches on disk while the store or receiver is away."`
}

// SpoolConfig is a spool that can be left out.
type SpoolConfig struct {
	Enabled      bool `yaml:"enabled" doc:"Keep batches on disk."`
	spool.Config `yaml:""`
	RefusedBytes int64 `yaml:"refused_bytes" doc:"Most bytes of refused points; the oldest go first." range:"1048576..1099511627776"`
}

// SetDefaultsFor leaves the store switched off. Its spool is in a relative directory, so that the working directory of a service
// decides where that is.
func (s *Config[C]) SetDefaultsFor(key string) {
	*s = Config[C]{Queue: sink.DefaultQueueConfig(), Spool: SpoolConfig{Enabled: true, Config: spool.DefaultConfig(), RefusedBytes: 64 << 20}}
	s.Spool.Dir = "spool/" + key
	if d, ok := any(&s.Config).(interface{ SetDefaults() }); ok {
		d.SetDefaults()
	}
}

// Validate does not check a store that is off.
func (s *Config[C]) Validate() error {
	if v, ok := any(&s.Config).(interface{ Validate() error }); ok && s.Enabled {
		return v.Validate()
	}
	return nil
}

// CheckFiles reads the files that the settings of the store name, unless it is off.
func (s *Config[C]) CheckFiles() error {
	if c, ok := any(&s.Config).(interface{ CheckFiles() error }); ok && s.Enabled {
		return c.CheckFiles()
	}
	return nil
}

// Doc implements [settings.Documented].
func (s Config[C]) Doc(key string) string {
	if d, ok := any(s.Config).(settings.Documented); ok {
		return d.Doc(key)
	}
	return ""
}

// Memory is the most memory of the store's queue, of one write, and of what the store itself keeps.
func (s *Config[C]) Memory() int64 {
	if !s.Enabled {
		return 0
	}
	const write = 16 << 20 // a record, its request, and their compression
	n := int64(s.Queue.MaxBytes) + write
	if s.Spool.Enabled {
		n += 2 * s.Spool.SegmentBytes
	}
	if m, ok := any(&s.Config).(interface{ Memory() int64 }); ok {
		n += m.Memory()
	}
	return n
}

// Output is what the store is expected to write, and nothing of one that is off.
func (s *Config[C]) Output(v *sink.Volume) (out sink.Output) {
	if o, ok := any(&s.Config).(interface {
		Output(*sink.Volume) sink.Output
	}); ok && s.Enabled {
		out = o.Output(v)
	}
	return out
}

// Validate does not check a spool that is off.
func (c *SpoolConfig) Validate() error {
	if !c.Enabled {
		return nil
	}
	return c.Config.Validate()
}

// openSeries opens the store alone.
func (s *Config[C]) openSeries(name string) (*Store, error) {
	if !s.Enabled {
		return nil, nil
	}
	opener, ok := any(s.Config).(interface {
		Open() (sink.Writer, error)
		Target() string
	})
	if !ok {
		return nil, fmt.Errorf("%s: %T has no methods Open and Target", name, s.Config)
	}
	w, err := opener.Open()
	if err != nil {
		return nil, named(name, err)
	}
	store := &Store{Name: name, Target: opener.Target(), Writer: w, Queue: s.Queue, Alerts: s.alerts()}
	if s.Spool.Enabled {
		store.Spool, store.RefusedBytes = &s.Spool.Config, s.Spool.RefusedBytes
	}
	return store, nil
}

// alerts reports whether the section is that of a receiver of alerts.
func (s *Config[C]) alerts() bool {
	a, ok := any(&s.Config).(interface{ Alerts() bool })
	return ok && a.Alerts()
}

// spoolDir is the directory of the spool, or "" where there is none.
func (s *Config[C]) spoolDir() string {
	if !s.Enabled || !s.Spool.Enabled {
		return ""
	}
	return s.Spool.Dir
}

func (s *Config[C]) open(name string, full sink.Policy) (*Store, sink.ReportWriter, error) {
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
	reports, err := r.OpenReports(full)
	if err != nil {
		return nil, nil, errors.Join(err, store.Writer.Close())
	}
	return store, reports, nil
}

// sections returns the stores that have a section in the settings struct cfg points to, switched on or not, by their names.
func sections(cfg any) iter.Seq2[string, section] {
	return func(yield func(string, section) bool) {
		for _, part := range settings.Parts(cfg) {
			if s, ok := part.Value.(section); ok && !yield(part.Key, s) {
				return
			}
		}
	}
}

// Open opens the stores that are enabled in the settings struct cfg points to, and their streams of reports. Nothing
// is written yet. A full queue acts by full.
func Open(cfg any, full sink.Policy) (stores []Store, reports []sink.ReportWriter, err error) {
	if err := Check(cfg); err != nil {
		return nil, nil, err
	}
	for name, s := range sections(cfg) {
		store, stream, err := s.open(name, full)
		if err != nil {
			err = errors.Join(err, closeWriters(stores))
			for _, r := range reports {
				err = errors.Join(err, r.Close(ended()))
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

func closeWriters(stores []Store) (err error) {
	for _, s := range stores {
		err = errors.Join(err, s.Writer.Close())
	}
	return err
}

// ended returns a context that has ended, so that nothing waits.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// OpenOne opens the store of one section of the settings struct cfg points to, for series alone.
func OpenOne(cfg any, name string) (*Store, error) {
	for key, s := range sections(cfg) {
		if key == name {
			store, err := s.openSeries(name)
			if store == nil && err == nil {
				err = fmt.Errorf("%s: is switched off in the settings", name)
			}
			return store, err
		}
	}
	return nil, fmt.Errorf("%s: the settings have no such store", name)
}

// Spools returns the directories of the spools that are switched on in the settings struct cfg points to, by the name of their store.
func Spools(cfg any) map[string]string {
	dirs := map[string]string{}
	for name, s := range sections(cfg) {
		if dir := s.spoolDir(); dir != "" {
			dirs[name] = dir
		}
	}
	return dirs
}

// FirstSpool returns the directory of the first spool of a store of series that is switched on in the settings struct cfg points to, or "".
func FirstSpool(cfg any) string {
	for _, s := range sections(cfg) {
		if dir := s.spoolDir(); dir != "" && !s.alerts() {
			return dir
		}
	}
	return ""
}

// Names lists the sections of stores of series, or of receivers of alerts, in a settings struct, enabled or not. cfg
// points to the struct.
func Names(cfg any, alerts bool) (names []string) {
	for name, s := range sections(cfg) {
		if s.alerts() == alerts {
			names = append(names, name)
		}
	}
	return names
}

// OpenReceivers opens the receivers of alerts that are switched on, and returns the error of each that cannot be opened by
// its name.
func OpenReceivers(cfg any) (receivers []Store, failed map[string]error) {
	failed = map[string]error{}
	for name, s := range sections(cfg) {
		if !s.alerts() {
			continue
		}
		store, err := s.openSeries(name)
		if err != nil {
			failed[name] = err
		} else if store != nil {
			receivers = append(receivers, *store)
		}
	}
	return receivers, failed
}

// ErrBeside is the error of another store that is enabled beside one that publishes to a fleet.
func ErrBeside(publisher, other string, alerts bool) error {
	if alerts {
		return fmt.Errorf("%s: is enabled beside %s, but the alerts of a fleet are sent by its consumers, once for all collectors: enable %s there and disable it here",
			other, publisher, other)
	}
	return fmt.Errorf("%s: is enabled beside %s, but the series of a fleet are written by its consumers: enable %s there and disable it here",
		other, publisher, other)
}

// Check returns which stores that are switched on in the settings struct cfg points to exclude each other.
func Check(cfg any) error {
	publisher, other, alerts := "", "", false
	for name, s := range sections(cfg) {
		switch enabled, publishes := s.use(); {
		case publishes:
			publisher = name
		case enabled && other == "":
			other, alerts = name, s.alerts()
		}
	}
	if publisher == "" || other == "" {
		return nil
	}
	return ErrBeside(publisher, other, alerts)
}

// Publishes reports whether the settings struct that cfg points to has a store switched on that publishes to a fleet.
func Publishes(cfg any) bool {
	for _, s := range sections(cfg) {
		if _, publishes := s.use(); publishes {
			return true
		}
	}
	return false
}

// use reports whether a store is enabled, and whether it publishes to a fleet: its settings have a method Publishes.
func (s *Config[C]) use() (enabled, publishes bool) {
	p, ok := any(&s.Config).(interface{ Publishes() bool })
	return s.Enabled, s.Enabled && ok && p.Publishes()
}
