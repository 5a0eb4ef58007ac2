package sequence

import "sync/atomic"

// Places is the memory that several trackers share: places of exporters, and memory for the records of those that need
// long ones.
type Places struct {
	all      int64
	trackers int
	reserve  int64        // places that each tracker has for itself
	left     atomic.Int64 // of the others
	allWords int64
	words    atomic.Int64 // left
}

// NewPlaces makes the places that cfg has, for a number of trackers. Each tracker has a small part of them for itself, so
// that newcomers find a place with it, whatever the others hold.
func NewPlaces(cfg Config, trackers int) *Places {
	words := int64(cfg.longest() / 64)
	p := &Places{all: int64(cfg.MaxExporters), trackers: trackers}
	p.reserve = p.all / 16 / int64(trackers)
	p.left.Store(p.all - p.reserve*int64(trackers))
	p.allWords = max(p.all*words/16, 4*words)
	p.words.Store(p.allWords)
	return p
}

// claimPlace takes one of the common places, if one is left.
func (p *Places) claimPlace() bool {
	if p.left.Add(-1) >= 0 {
		return true
	}
	p.left.Add(1)
	return false
}

// nearlyFull reports whether at most a quarter of the places is left.
func (p *Places) nearlyFull() bool { return p.left.Load() <= p.all/4 }

// claimWords takes memory for a longer record. An exporter that is not trusted leaves three quarters of it to others.
func (p *Places) claimWords(n int64, trusted bool) bool {
	least := int64(0)
	if !trusted {
		least = p.allWords / 4 * 3
	}
	if p.words.Add(-n) >= least {
		return true
	}
	p.words.Add(n)
	return false
}
