package steer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Measured is a running collector that is asked.
type Measured struct {
	url    string
	Get    func(ctx context.Context, path string, into any) error
	Names  *names.Names
	span   time.Duration
	window time.Duration // length of one
}

// OpenMeasured reads what all figures need: names, and the length of a window. The function get reads the page at url.
func OpenMeasured(ctx context.Context, url string, get func(ctx context.Context, path string, into any) error) (*Measured, error) {
	m := &Measured{url: url, Get: get}
	var status struct {
		WindowMS int64 `json:"window_ms"`
		Windows  int64
	}
	if err := m.Get(ctx, "/api/status", &status); err != nil {
		return nil, err
	}
	var hops struct {
		RecentWindows int64 `json:"recent_windows"`
	}
	if err := m.Get(ctx, "/api/hops?limit=1", &hops); err != nil {
		return nil, err
	}
	if longest := int64(24 * time.Hour / time.Millisecond); status.WindowMS > longest {
		return nil, fmt.Errorf("%s: windows of %d ms are none of a collector", m.url, status.WindowMS)
	}
	m.window = time.Duration(status.WindowMS) * time.Millisecond
	m.span = time.Duration(min(hops.RecentWindows, status.Windows, mostRecent)) * m.window
	if m.span <= 0 {
		return nil, fmt.Errorf("%s %w: ask again when it has collected for a while", m.url, errNoWindow)
	}
	var d names.Document
	if m.Get(ctx, "/api/names", &d) == nil { // an older program has no names
		m.Names = d.Names()
	}
	return m, nil
}

// mostRecent bounds the number of recent windows that an answer can state.
const mostRecent = 1000

// errNoWindow is the error of a collector that no report has come to.
var errNoWindow = errors.New("has seen no window yet")

// Span is the time of the windows that the figures are sums of.
func (m *Measured) Span() time.Duration { return m.span }

// FlowAnswer is a flow of the list of flows.
type FlowAnswer struct {
	Key     string
	Packets float64
	Path    []struct {
		Node     inference.HopName
		EgressIf string `json:"egress_if"`
	}
}

// How many entries of a list are requested at a time, and how many at most, whatever length the answers claim.
const (
	pageLength = 200
	maxListed  = 1 << 20
)

// List requests a list, page by page, and passes all of it to handle.
func List[T any](ctx context.Context, m *Measured, path, key string, handle func(T)) error {
	for offset := 0; ; {
		var page map[string]json.RawMessage
		query := url.Values{"limit": {strconv.Itoa(pageLength)}, "offset": {strconv.Itoa(offset)}}
		if err := m.Get(ctx, path+"?"+query.Encode(), &page); err != nil {
			return err
		}
		var total int
		var entries []T
		if err := json.Unmarshal(page["total"], &total); err != nil {
			return fmt.Errorf("%s: %s does not say how long it is: %w", m.url, path, err)
		}
		if err := json.Unmarshal(page[key], &entries); err != nil {
			return fmt.Errorf("%s: %s: %w", m.url, path, err)
		}
		for _, e := range entries {
			handle(e)
		}
		offset += len(entries)
		switch {
		case len(entries) == 0 || offset >= total:
			return nil
		case offset >= maxListed:
			return fmt.Errorf("%s: %s has no end: %d entries came, and it says that there are %d", m.url, path, offset, total)
		}
	}
}

// Node writes a node as planners name it: by its name, where it has one that no other node has.
func (m *Measured) Node(id uint32) string {
	if n, ok := m.Names.Find(id); ok && n.Name != "" {
		same := func(o names.Node) bool { return o.Name == n.Name && o.ID != n.ID }
		if !slices.ContainsFunc(m.Names.Document().Nodes, same) {
			return n.Name
		}
	}
	return strconv.FormatUint(uint64(id), 10)
}

// HopAnswer is a hop of the list of hops.
type HopAnswer struct {
	Node        string
	EgressIf    string   `json:"egress_if"`
	Utilization *float64 `json:"tx_utilization"`
}

// Hop is its key, if it is one interface.
func (h *HopAnswer) Hop() (k inference.HopKey, ok bool) {
	k, err := inference.ParseHop(h.Node + ":" + h.EgressIf)
	return k, err == nil && !k.Other && k.EgressIf != 0
}
