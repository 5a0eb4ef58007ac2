package collector

import (
	"errors"
	"io"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest"
)

// Source is where frames come from, under the name that metrics, page and log give it.
type Source struct {
	Name string
	ingest.Source
	Metrics []ingest.Metric
}

// sourceSection is implemented by the settings of a source. Open gives nil where the settings name nothing to read.
type sourceSection interface {
	Open() (ingest.Source, error)
	Metrics() []ingest.Metric
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

// sourceMetrics lists the metrics of sources by the names under which they are published.
func sourceMetrics(sources []Source) (metrics []Metric) {
	for _, s := range sources {
		for _, m := range s.Metrics {
			metrics = append(metrics, Metric{Name: sourceMetricName(s.Name, m), Help: m.Help, Kind: Counter})
		}
	}
	return metrics
}

func sourceMetricName(source string, m ingest.Metric) string {
	return "hopscope_" + source + "_" + m.Name
}

// Detector turns windows into findings. It is called from one goroutine, and does not keep the window. The findings are
// valid until the next call.
type Detector interface {
	Step(w *inference.Window) []inference.Finding
}
