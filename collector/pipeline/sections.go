package pipeline

import (
	"errors"
	"io"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/ingest"
)

// Source is an origin of frames, under the name that metrics, page and log give it.
type Source struct {
	Name string
	ingest.Source
	Metrics []ingest.Metric
}

// sourceSection is implemented by the settings of a source. Open returns nil if the settings name nothing to read.
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

// CloseSources closes sources that are not run after all.
func CloseSources(sources []Source) error {
	var errs []error
	for _, s := range sources {
		if c, ok := s.Source.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Sections are the sources that have a section in the settings struct cfg points to, not opened.
func Sections(cfg any) (sources []Source) {
	for _, part := range settings.Parts(cfg) {
		if section, ok := part.Value.(sourceSection); ok {
			sources = append(sources, Source{Name: part.Key, Metrics: section.Metrics()})
		}
	}
	return sources
}
