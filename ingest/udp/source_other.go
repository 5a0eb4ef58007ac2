//go:build !linux

package udp

// Source receives on all configured addresses. It implements [github.com/hopscope/hopscope/ingest.Source].
type Source struct{ *portable }

// New opens all sockets, or none when one of them fails.
func New(cfg Config) (*Source, error) {
	p, err := newPortable(cfg)
	if err != nil {
		return nil, err
	}
	return &Source{p}, nil
}
